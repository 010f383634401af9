"""(g) What it takes until both agents of the demo are as good as TRL makes them.

HACPO co-trains both; TRL trains each by GSPO. First each side chooses among as many settings:
learning rates, and three ways to make updates from a step's responses. Then fresh seeds, the same
for both, are trained in turns at the chosen settings. Tuning problems choose, other problems
measure. An agent may have a learning rate of its own on either side.

The accuracy to reach is stated by the rule: of each agent, what TRL's GSPO has at its end; and
shares of the way there. Curves are means over the seeds, linear between evaluations.
"""

from __future__ import annotations

import itertools
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.speed.crossing import Point, averaged, compared, end, targets
from benchmarks.speed.curves import Hacpo, Trl, demo_recipe, train_hacpo, train_trl

__all__ = ["race"]

RATES = (1e-4, 2e-4, 4e-4)
HACPO_MINI_BATCHES = (1, 2, 4)
TRL_UPDATES = ((1, 1), (2, 1), (1, 2))
"""Mini-batches of a step, and passes over them."""
SEARCH_SEED = 1000
SEEDS = (0, 1, 2, 3, 4)
WAYS = (0.5, 0.75, 0.9, 1.0)
"""Shares of the way from an agent's first accuracy to TRL's last."""
TUNING = 0
"""Place of the accuracy that chooses."""


def race(scratch: Path) -> dict[str, Any]:
    """Choose settings, train all seeds, and compare."""
    recipe = demo_recipe(SEARCH_SEED)
    agents = list(recipe.agents)
    hacpo, trl, searched = _search(agents, scratch)
    runs: list[dict[str, Any]] = []
    for seed in SEEDS:
        _say(f"seed {seed}")
        runs.append(
            {
                "hacpo": _alone(train_hacpo, hacpo, seed),
                "trl": {a: _alone(train_trl, trl[a], seed, scratch / "trl") for a in agents},
            }
        )
    ours = averaged([run["hacpo"] for run in runs])
    theirs = {agent: averaged([run["trl"][agent] for run in runs]) for agent in agents}
    rollouts = recipe.prompts_per_step * recipe.group_size
    return {
        "searched": searched,
        "chosen": {"hacpo": asdict(hacpo), "trl": {a: asdict(trl[a]) for a in agents}},
        "seeds": SEEDS,
        "rollouts_a_step": rollouts,
        "at_the_end": {
            "hacpo": {a: round(end(ours, a), 3) for a in agents},
            "trl": {a: round(end(theirs[a], a), 3) for a in agents},
        },
        "comparisons": [
            {"way": way, **compared(ours, theirs, targets(theirs, way), rollouts)} for way in WAYS
        ],
        "by_seed": [
            compared(run["hacpo"], run["trl"], targets(theirs, 1.0), rollouts) for run in runs
        ],
        "curves": {
            "hacpo": [asdict(point) for point in ours],
            "trl": {agent: [asdict(point) for point in theirs[agent]] for agent in agents},
        },
    }


def _search(
    agents: Sequence[str], scratch: Path
) -> tuple[Hacpo, dict[str, Trl], list[dict[str, Any]]]:
    """The best setting of each side, and how all did. Two at a time, since nothing is timed."""
    ours = [
        Hacpo(dict.fromkeys(agents, rate), count)
        for count, rate in itertools.product(HACPO_MINI_BATCHES, RATES)
    ]
    theirs = [
        Trl(agent, rate, *updates)
        for agent, updates, rate in itertools.product(agents, TRL_UPDATES, RATES)
    ]
    with ProcessPoolExecutor(
        2, multiprocessing.get_context("spawn"), max_tasks_per_child=1
    ) as workers:
        running = [(one, workers.submit(train_hacpo, one, SEARCH_SEED)) for one in ours]
        trainers = [
            (one, workers.submit(train_trl, one, SEARCH_SEED, scratch / f"trl-{i}"))
            for i, one in enumerate(theirs)
        ]
        our_ends = {}
        for setting, run in running:
            for agent, rate in setting.rates.items():
                our_ends[setting.mini_batches, agent, rate] = end(run.result(), agent, TUNING)
            _say(f"searched {setting}")
        their_ends = {}
        for one, run in trainers:
            their_ends[one] = end(run.result(), one.agent, TUNING)
            _say(f"searched {one}")

    def best_rates(count: int) -> dict[str, float]:
        return {a: max(RATES, key=lambda rate: our_ends[count, a, rate]) for a in agents}

    def reached_with(count: int) -> float:
        return sum(our_ends[count, a, rate] for a, rate in best_rates(count).items())

    count = max(HACPO_MINI_BATCHES, key=reached_with)
    searched = [
        {"side": "hacpo", "agent": agent, "rate": rate, "mini_batches": count, "end": value}
        for (count, agent, rate), value in our_ends.items()
    ] + [{"side": "trl", **asdict(one), "end": value} for one, value in their_ends.items()]
    trl = {
        agent: max((one for one in theirs if one.agent == agent), key=their_ends.__getitem__)
        for agent in agents
    }
    return Hacpo(best_rates(count), count), trl, searched


def _alone(train: Callable[..., list[Point]], *args: Any) -> list[Point]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as worker:
        return worker.submit(train, *args).result()


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")

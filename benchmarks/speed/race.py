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
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.speed.curves import Hacpo, Point, Trl, demo_recipe, train_hacpo, train_trl

__all__ = ["averaged", "compared", "race", "reached"]

RATES = (1e-4, 2e-4, 4e-4)
HACPO_MINI_BATCHES = (1, 2, 4)
TRL_UPDATES = ((1, 1), (2, 1), (1, 2))
"""Mini-batches of a step, and passes over them."""
SEARCH_SEED = 1000
SEEDS = (0, 1, 2, 3, 4)
WAYS = (0.5, 0.75, 0.9, 1.0)
"""Shares of the way from an agent's first accuracy to TRL's last."""
ENDS = 3
"""Evaluations whose mean is the accuracy at the end."""
TUNING, MEASURING = 0, 1

Curves = Mapping[str, Sequence[Point]]
"""What each agent's accuracy is read off, by its name."""


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
            "hacpo": {a: round(_end(ours, a, MEASURING), 3) for a in agents},
            "trl": {a: round(_end(theirs[a], a, MEASURING), 3) for a in agents},
        },
        "comparisons": [compared(ours, theirs, way, rollouts) for way in WAYS],
        "by_seed": [
            compared(run["hacpo"], run["trl"], 1.0, rollouts, targets=_targets(theirs, 1.0))
            for run in runs
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
                our_ends[setting.mini_batches, agent, rate] = _end(run.result(), agent, TUNING)
            _say(f"searched {setting}")
        their_ends = {}
        for one, run in trainers:
            their_ends[one] = _end(run.result(), one.agent, TUNING)
            _say(f"searched {one}")

    def best_rates(count: int) -> dict[str, float]:
        return {a: max(RATES, key=lambda rate: our_ends[count, a, rate]) for a in agents}

    def reached_with(count: int) -> float:
        return sum(our_ends[count, a, rate] for a, rate in best_rates(count).items())

    count = max(HACPO_MINI_BATCHES, key=reached_with)
    searched = [
        {"side": "hacpo", "agent": agent, "rate": rate, "mini_batches": count, "end": end}
        for (count, agent, rate), end in our_ends.items()
    ] + [{"side": "trl", **asdict(one), "end": end} for one, end in their_ends.items()]
    trl = {
        agent: max((one for one in theirs if one.agent == agent), key=their_ends.__getitem__)
        for agent in agents
    }
    return Hacpo(best_rates(count), count), trl, searched


def averaged(runs: Sequence[Sequence[Point]]) -> list[Point]:
    """The mean of runs with evaluations at the same steps."""
    return [
        Point(
            points[0].step,
            statistics.mean(point.seconds for point in points),
            statistics.mean(point.cpu for point in points),
            {
                agent: (
                    statistics.mean(point.accuracy[agent][TUNING] for point in points),
                    statistics.mean(point.accuracy[agent][MEASURING] for point in points),
                )
                for agent in points[0].accuracy
            },
        )
        for points in zip(*runs, strict=True)
    ]


def compared(
    ours: Sequence[Point],
    theirs: Curves,
    way: float,
    rollouts: int,
    targets: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """What each side takes until every agent is as good as wanted.

    Args:
        way: share of the way to what TRL has at its end.
        rollouts: of each agent in a step.
        targets: accuracies to reach; None takes those that `way` means in these curves.

    Returns:
        Accuracies, steps and costs; no costs where an agent did not get there.
    """
    wanted = targets or _targets(theirs, way)
    mine = {agent: reached(ours, agent, value) for agent, value in wanted.items()}
    other = {agent: reached(theirs[agent], agent, value) for agent, value in wanted.items()}
    found: dict[str, Any] = {
        "way": way,
        "accuracy_to_reach": {agent: round(value, 3) for agent, value in wanted.items()},
        "steps_needed": {
            side: {agent: point and round(point[0], 1) for agent, point in points.items()}
            for side, points in (("hacpo", mine), ("trl", other))
        },
    }
    our_points = [point for point in mine.values() if point]
    their_points = [point for point in other.values() if point]
    if len(our_points) + len(their_points) == 2 * len(wanted):
        names = ("rollouts", "seconds", "cpu_seconds")
        scales = (rollouts, 1.0, 1.0)
        last = max(our_points)  # one run trains all agents
        costs = {
            name: (
                last[i] * scale * (len(wanted) if name == "rollouts" else 1),
                sum(point[i] for point in their_points) * scale,
            )
            for i, (name, scale) in enumerate(zip(names, scales, strict=True))
        }
        found["hacpo"] = {name: round(a, 1) for name, (a, _) in costs.items()}
        found["trl"] = {name: round(b, 1) for name, (_, b) in costs.items()}
        found["share_of_trl"] = {name: round(a / b, 2) for name, (a, b) in costs.items()}
    return found


def reached(run: Sequence[Point], agent: str, wanted: float) -> tuple[float, float, float] | None:
    """Steps, seconds and processor seconds until an agent is as good as wanted, None if never."""
    before = run[0]
    for point in run:
        value = point.accuracy[agent][MEASURING]
        if value >= wanted:
            low = before.accuracy[agent][MEASURING]
            part = (wanted - low) / (value - low) if value > low else 0.0
            a, b = ((p.step, p.seconds, p.cpu) for p in (before, point))
            steps, seconds, cpu = (x + max(part, 0.0) * (y - x) for x, y in zip(a, b, strict=True))
            return steps, seconds, cpu
        before = point
    return None


def _targets(theirs: Curves, way: float) -> dict[str, float]:
    found = {}
    for agent, run in theirs.items():
        first = run[0].accuracy[agent][MEASURING]
        found[agent] = first + way * (_end(run, agent, MEASURING) - first)
    return found


def _end(run: Sequence[Point], agent: str, problems: int) -> float:
    return statistics.mean(point.accuracy[agent][problems] for point in run[-ENDS:])


def _alone(train: Callable[..., list[Point]], *args: Any) -> list[Point]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as worker:
        return worker.submit(train, *args).result()


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")

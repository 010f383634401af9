"""What Ray costs and brings: the data plane, overhead per step, speed-up, recovery after a kill.

- `data_plane`: a pool of 1,000 rollouts to the object store and back to records, as Arrow columns
  and, for comparison, as pickled records. Median over rounds.
- `overhead_per_step`: seconds of `sample` and `learn` with agents that answer at once, at several
  numbers of agents: what is left when no agent computes. All agents are on one machine.
- `speed_up`: seconds of a step of two bundled models, in one process one after another, and on Ray
  with one core each. Medians over the steps, the first left out.
- `recovery`: seconds from the end of an agent's process to the first phase of the repeated step.

Half of what is measured is other people's load, so the load average is written down.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import pickle
import platform
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import ray

from hacrl.agents.learning.reporting import LearnReport, LessonRecord
from hacrl.columns import ROLLOUTS, to_table
from hacrl.config import Recipe, load_recipe, recipe_from_dict
from hacrl.config.bundled import find_recipe
from hacrl.console.observer import Silent
from hacrl.fleet import ray as ray_fleet
from hacrl.fleet.columns import from_columns, to_columns
from hacrl.fleet.ray import RayFleet
from hacrl.fleet.worker import Place, ReportColumns
from hacrl.records import Outcome, Pool, Prompt, Rollout, Verdict, Verified
from hacrl.training.train import train

ROLLOUTS_PER_POOL = 1000
TOKENS = 256
AGENTS = (2, 4, 8)
RESULT = Path(__file__).with_name("results") / "ray_overhead.json"


def main() -> None:
    """Measure, print, and write the result file."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--steps", type=int, default=6)
    options.add_argument("--out", type=Path, default=RESULT)
    chosen = options.parse_args()
    load = os.getloadavg()[0]
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
    begun = time.perf_counter()
    ray.init(
        address="local",
        num_cpus=max(AGENTS),
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    started = time.perf_counter() - begun
    result = {
        "machine": {"cpus": os.cpu_count(), "system": platform.system()},
        "load_average_before": round(load, 2),
        "versions": {name: version(name) for name in ("hacrl", "ray", "pyarrow", "torch")},
        "ray_start_seconds": round(started, 2),
        "data_plane": data_plane(chosen.rounds),
        "overhead_per_step": {str(n): overhead(n, chosen.rounds) for n in AGENTS},
        "speed_up": speed_up(chosen.steps),
        "recovery": recovery(),
    }
    result["load_average_after"] = round(os.getloadavg()[0], 2)
    ray.shutdown()
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


def data_plane(rounds: int) -> dict[str, Any]:
    """Milliseconds and bytes of a pool of 1,000 rollouts, by the form in which it travels."""
    pool = make_pool(("kim", "lee"), ROLLOUTS_PER_POOL)
    return {
        "rollouts": len(pool.rows),
        "tokens_per_rollout": TOKENS,
        "arrow_columns": _travel(rounds, lambda: to_columns(pool), from_columns),
        "pickled_records": _travel(rounds, lambda: pool, lambda same: same),
    }


def _travel(
    rounds: int, pack: Callable[[], Any], unpack: Callable[[Any], Pool]
) -> dict[str, float]:
    sent, received = [], []
    for _ in range(rounds):
        begun = time.perf_counter()
        reference = ray.put(pack())
        there = time.perf_counter()
        unpack(ray.get(reference, timeout=60))
        sent.append(there - begun)
        received.append(time.perf_counter() - there)
    return {
        "send_ms": round(1000 * statistics.median(sent), 2),
        "receive_ms": round(1000 * statistics.median(received), 2),
        "bytes": len(pickle.dumps(pack(), protocol=5)),
    }


class Idle:
    """In place of a worker: answers at once what an agent would after its work."""

    def __init__(self, name: str, recipe: Recipe, folder: str, threads: int, rank: int) -> None:
        self._name = name
        rows = make_pool((name,), recipe.prompts_per_step * recipe.group_size).rows
        self._rollouts = to_table([row.rollout for row in rows], ROLLOUTS)

    def start(self, checkpoint: Path | None, probe: Path, *, anew: bool, meeting: None) -> Place:
        node = ray.get_runtime_context().get_node_id()
        return Place(platform.node(), node, os.getpid(), True)

    def sample(self, prompts: Any, group_size: int, occasion: str, decoding: None) -> Any:
        return self._rollouts

    def learn(self, columns: Any, omega: Any) -> ReportColumns:
        lessons = tuple(
            LessonRecord(
                learner=self._name,
                agent=row.rollout.agent,
                prompt=row.rollout.prompt,
                sample=row.rollout.sample,
                advantage=0.0,
                tokens=row.rollout.length,
                left_out=None,
                update=None,
                log_ratio=None,
                below=None,
                above=None,
                teaches=False,
                finite=None,
            )
            for row in from_columns(columns).rows
        )
        return ReportColumns.of(LearnReport(self._name, {}, lessons))


def overhead(agents: int, rounds: int) -> dict[str, float]:
    """Milliseconds per step at a number of agents, each with 125 rollouts of 256 tokens."""
    names = [f"agent{number}" for number in range(agents)]
    recipe = recipe_from_dict(
        {
            "name": "overhead",
            "steps": 1,
            "prompts_per_step": 25,
            "agents": {name: {"model": "none/at-all"} for name in names},
            "tasks": {
                "t": {"source": {"type": "jsonl", "path": "x"}, "verifier": {"type": "exact"}}
            },
            "sampling": {"group_size": 5},
            "fleet": "ray",
        }
    )
    own = ray_fleet._Actor
    ray_fleet._Actor = ray.remote(Idle)
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            RayFleet(recipe, Path(folder) / "overhead", print) as fleet,
        ):
            fleet.start(None)
            return _steps(fleet, recipe, rounds)
    finally:
        ray_fleet._Actor = own


def _steps(fleet: RayFleet, recipe: Recipe, rounds: int) -> dict[str, float]:
    prompts = make_pool(fleet.agents, len(fleet.agents) * 125).prompts
    values = [[1.0] * recipe.group_size] * len(prompts)
    advantages = {k: {k: values} | dict.fromkeys(recipe.sources(k), values) for k in fleet.agents}
    sampled, learned = [], []
    for number in range(rounds + 1):
        begun = time.perf_counter()
        rollouts = fleet.sample(prompts, recipe.group_size, occasion=f"step {number}")
        there = time.perf_counter()
        rows = [Verified(r, Verdict(1.0, Outcome.RIGHT)) for own in rollouts.values() for r in own]
        pool = Pool(number, fleet.agents, prompts, recipe.group_size, tuple(rows))
        again = time.perf_counter()
        fleet.learn(pool, advantages)
        if number:  # the first warms up
            sampled.append(there - begun)
            learned.append(time.perf_counter() - again)
    return {
        "rollouts": len(rows),
        "sample_ms": round(1000 * statistics.median(sampled), 1),
        "learn_ms": round(1000 * statistics.median(learned), 1),
    }


class Clock(Silent):
    """Notes when phases begin, and can end an agent's process at one of them."""

    def __init__(self, victim: Callable[[], int] | None = None) -> None:
        self.steps: list[float] = []
        self.killed = self.back = 0.0
        self._victim = victim

    def phase(self, name: str, step: int) -> None:
        if self.killed and not self.back and name == "sample":
            self.back = time.perf_counter()
        if self._victim is not None and (name, step) == ("learn", 1) and not self.killed:
            os.kill(self._victim(), signal.SIGKILL)
            self.killed = time.perf_counter()

    def step(self, metrics: Any, seconds_left: float) -> None:
        self.steps.append(sum(metrics[0]["seconds"].values()))


def speed_up(steps: int) -> dict[str, float]:
    """Seconds per step of the demo's two models, and how much faster they are side by side."""
    medians = {}
    for kind in ("local", "ray"):
        clock = Clock()
        with tempfile.TemporaryDirectory() as folder:
            train(_demo(kind, steps), Path(folder), clock)
        medians[kind] = statistics.median(clock.steps[1:])
    return {
        "local_seconds_per_step": round(medians["local"], 2),
        "ray_seconds_per_step": round(medians["ray"], 2),
        "speed_up": round(medians["local"] / medians["ray"], 2),
    }


def recovery() -> dict[str, float]:
    """Seconds until a step is repeated after an agent's process was killed in it."""
    places: Mapping[str, Place] = {}
    start = RayFleet.start

    def started(self: RayFleet, checkpoint: Path | None) -> RayFleet:
        nonlocal places
        fleet = start(self, checkpoint)
        places = fleet.places
        return fleet

    clock = Clock(lambda: places["bob"].process)
    with tempfile.TemporaryDirectory() as folder, patch.object(RayFleet, "start", started):
        train(_demo("ray", 2), Path(folder), clock)
    return {"seconds": round(clock.back - clock.killed, 2)}


def _demo(kind: str, steps: int) -> Recipe:
    changes = [f"fleet={kind}", f"steps={steps}", "threads=1", "checkpoints.every=1"]
    return load_recipe(find_recipe("demo"), [*changes, "evaluation=null"])


def make_pool(agents: tuple[str, ...], rollouts: int) -> Pool:
    """A pool of so many rollouts in all, five to a prompt."""
    draw = random.Random(0)
    prompts = tuple(
        Prompt(f"t/{i}", "t", "what is it? " * 10, "1") for i in range(rollouts // len(agents) // 5)
    )
    rows = [
        Verified(
            Rollout(
                prompt=prompt,
                agent=agent,
                sample=sample,
                policy_version=0,
                text="".join(draw.choices("0123456789 +=", k=3 * TOKENS)),
                logprob=-draw.random() * TOKENS,
                length=TOKENS,
                finished=True,
            ),
            Verdict(float(sample % 2), Outcome.RIGHT if sample % 2 else Outcome.WRONG, "1"),
        )
        for agent in agents
        for prompt in range(len(prompts))
        for sample in range(5)
    ]
    return Pool(0, agents, prompts, 5, tuple(rows))


if __name__ == "__main__":
    main()

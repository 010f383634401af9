"""What a step of the paper's scale and beyond asks of the controller, the object store and files.

The loop, the fleet on Ray, verifiers and recorder are the real ones. The agents answer at once:
stand-ins send texts of the length that 8,192 tokens have, and report on every one that they get.
Everything is on one machine.

- `controller_seconds`: processor time of the controller's own process in a step, by part, and in
  all. What agents and verifiers compute is not in it.
- `seconds`: likewise by the clock. Stand-ins and verifiers share the cores with the controller.
- `peak_gb`: most memory that the controller, and the largest stand-in, ever held.
- `megabytes`: what crosses in a step through the object store, and what is written of it.

Medians over the steps, the first left out.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import ray

from hacrl.agents.learning.algorithm import recipe_algorithm
from hacrl.agents.learning.reporting import LearnReport, LessonRecord, make_report
from hacrl.algorithm.capability import CapabilityTracker
from hacrl.columns import ROLLOUTS, to_table
from hacrl.config import Recipe, recipe_from_dict
from hacrl.console.observer import Silent
from hacrl.fleet import ray as ray_fleet
from hacrl.fleet.columns import PoolColumns, from_columns, to_columns
from hacrl.fleet.ray import RayFleet
from hacrl.fleet.worker import Place, ReportColumns
from hacrl.phases import Phases
from hacrl.records import Prompt, Rollout
from hacrl.runs.folder import RunFolder
from hacrl.tasks import PromptStream
from hacrl.training.loggers import Loggers
from hacrl.training.loop import Step, co_train
from hacrl.training.recorder import Recorder
from hacrl.verify import make_pool

RESULT = Path(__file__).with_name("results") / "scale_simulation.json"
CHARACTERS = 3.5
"""Of a token of English mathematics, about."""
_WORDS = 2_000_000
"""Of the text that responses are cut from."""


def main() -> None:
    """Measure, print, and write the result file."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("agents", 4), ("prompts", 128), ("samples", 16), ("tokens", 8192)):
        options.add_argument(f"--{name}", type=int, default=value)
    options.add_argument("--steps", type=int, default=4)
    options.add_argument("--out", type=Path, default=RESULT)
    chosen = options.parse_args()
    load = os.getloadavg()[0]
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
    ray.init(
        address="local",
        num_cpus=chosen.agents,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    recipe = make_recipe(chosen.agents, chosen.prompts, chosen.samples, chosen.tokens, chosen.steps)
    with tempfile.TemporaryDirectory() as folder:
        measured = simulate(recipe, Path(folder))
    result = {
        "machine": {"cpus": os.cpu_count(), "system": platform.system()},
        "load_average_before": round(load, 2),
        "versions": {name: version(name) for name in ("hacrl", "ray", "pyarrow", "torch")},
        "size": {
            name: getattr(chosen, name) for name in ("agents", "prompts", "samples", "tokens")
        },
        **measured,
        "load_average_after": round(os.getloadavg()[0], 2),
    }
    ray.shutdown()
    text = json.dumps(result, indent=2) + "\n"
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(text, encoding="utf-8")
    sys.stdout.write(text)


class StandIn:
    """In place of a `Worker`: answers at once what an agent would after its work."""

    def __init__(self, name: str, recipe: Recipe, folder: str, threads: int, rank: int) -> None:
        self._name = name
        self._rollouts = to_table(make_rollouts(name, recipe), ROLLOUTS)

    def place(self, probe: Path) -> Place:
        node = ray.get_runtime_context().get_node_id()
        return Place(platform.node(), node, os.getpid(), True)

    def start(self, checkpoint: Path | None, probe: Path, *, anew: bool, meeting: None) -> Place:
        return self.place(probe)

    def sample(self, prompts: Any, group_size: int, occasion: str, decoding: None) -> Any:
        return self._rollouts

    def learn(self, columns: PoolColumns, advantage: Mapping[str, Any]) -> ReportColumns:
        """Like a learner, read the pool that all have, and report a lesson for every response."""
        lessons = tuple(
            LessonRecord(
                learner=self._name,
                agent=row.rollout.agent,
                prompt=row.rollout.prompt,
                sample=row.rollout.sample,
                advantage=advantage[row.rollout.agent][row.rollout.prompt][row.rollout.sample],
                tokens=row.rollout.length,
                left_out=None,
                update=row.rollout.prompt % 8,
                log_ratio=-0.01 * row.rollout.sample,
                below=0.0,
                above=0.0,
                teaches=True,
                finite=True,
            )
            for row in from_columns(columns).rows
        )
        sources = [name for name in advantage if name != self._name]
        nothing = make_report(
            self._name, sources, [], {}, [], skipped_in_a_row=0, reduced_micro_batch_tokens=None
        )
        metrics = {**nothing.metrics, "peak_bytes": peak_bytes()}
        return ReportColumns.of(LearnReport(self._name, metrics, lessons))


class CountedPhases(Phases):
    """Also notes the processor time of this process by phase, and of what is between them."""

    def __init__(self) -> None:
        super().__init__(Silent().phase, lambda: False)
        self.spent: dict[str, float] = {}
        self._since = time.process_time()

    @contextmanager
    def __call__(self, name: str, step: int) -> Iterator[None]:
        self.note("judge")
        with super().__call__(name, step):
            yield
        self.note(name)

    def note(self, name: str) -> None:
        """What was computed since the last call belongs to a part of this name."""
        now = time.process_time()
        self.spent[name] = self.spent.get(name, 0.0) + now - self._since
        self._since = now


def simulate(recipe: Recipe, root: Path) -> dict[str, Any]:
    """Make the steps of a recipe on the Ray that is connected, and measure them."""
    prompts = make_prompts(recipe)
    run = RunFolder.create(root, recipe, overwrite=False)
    recorder = Recorder(recipe, run, Silent(), Loggers(recipe, run.path, print, 0), 0)
    tracker = CapabilityTracker(list(recipe.agents), 5, "mean_reward", 10.0)
    rows: list[dict[str, dict[str, float]]] = []
    with (
        patch.object(ray_fleet, "_Actor", ray.remote(StandIn)),
        RayFleet(recipe, run.path, print) as fleet,
        make_pool(recipe.tasks, recipe.verification) as verifiers,
    ):
        fleet.start(None)
        before, begun, phases = peak_bytes(), time.perf_counter(), CountedPhases()
        for step in co_train(
            fleet,
            PromptStream(prompts, recipe.prompts_per_step, recipe.seed),
            verifiers,
            tracker,
            recipe_algorithm(recipe),
            {name: recipe.sources(name) for name in recipe.learners},
            steps=range(recipe.steps),
            group_size=recipe.group_size,
            phases=phases,
            before_learning=lambda: None,
        ):
            phases.note("judge")
            recorder.step(step)
            phases.note("write")
            now = time.perf_counter()
            clock = {**step.seconds, "write": 0.0}
            clock["write"] = now - begun - sum(clock.values())
            rows.append({"controller": {**phases.spent}, "clock": clock})
            begun, phases.spent = now, {}
        peak = peak_bytes()
    return {
        "responses": len(step.pool.rows),
        "controller_seconds": medians([row["controller"] for row in rows[1:]]),
        "seconds": medians([row["clock"] for row in rows[1:]]),
        "peak_gb": {
            "controller_before": round(before / 1e9, 2),
            "controller": round(peak / 1e9, 2),
            "stand_in": round(max(r.metrics["peak_bytes"] for r in step.reports) / 1e9, 2),
        },
        "megabytes": {
            **crossing(step),
            **{
                f"{kind}_file": round(
                    (run.path / kind / "step-000001.parquet").stat().st_size / 1e6
                )
                for kind in ("rollouts", "lessons")
            },
        },
    }


def crossing(step: Step) -> dict[str, int]:
    """Megabytes through the object store: what all agents send, what all get, what all report."""
    pool = to_columns(step.pool)
    lessons = [ReportColumns.of(report).lessons.nbytes for report in step.reports]
    sampled = sum(to_table(_rollouts(step, name), ROLLOUTS).nbytes for name in step.pool.agents)
    sizes = {"sampled": sampled, "pool": pool.rows.nbytes, "reports": sum(lessons)}
    return {name: round(size / 1e6) for name, size in sizes.items()}


def _rollouts(step: Step, agent: str) -> list[Rollout]:
    return [row.rollout for row in step.pool.of(agent)]


def medians(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Of every part, and of their sums."""
    parts = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    parts["total"] = statistics.median(sum(row.values()) for row in rows)
    return {name: round(value, 2) for name, value in parts.items()}


def make_recipe(agents: int, prompts: int, samples: int, tokens: int, steps: int) -> Recipe:
    """One of so many agents, each of which learns from all."""
    return recipe_from_dict(
        {
            "name": "scale",
            "steps": steps,
            "prompts_per_step": prompts,
            "agents": {f"agent{number}": {"model": "none/at-all"} for number in range(agents)},
            "tasks": {
                "t": {"source": {"type": "jsonl", "path": "x"}, "verifier": {"type": "math"}}
            },
            "sampling": {"group_size": samples, "max_new_tokens": tokens},
            "verification": {"workers": os.cpu_count() or 1},
            "fleet": "ray",
        }
    )


def make_prompts(recipe: Recipe) -> list[Prompt]:
    """As many as a step has, each with a problem of some length."""
    problem = "what is it, if all that was said before is true? " * 10
    return [
        Prompt(f"t/{number}", "t", f"{number}: {problem}", str(number))
        for number in range(recipe.prompts_per_step)
    ]


def make_rollouts(agent: str, recipe: Recipe) -> list[Rollout]:
    """All responses of a step: words in a random order, and an answer that is right at times."""
    draw = random.Random(agent)
    letters = "etaoinshrdlucmfw"
    words = ["".join(draw.choices(letters, k=draw.randint(1, 9))) for _ in range(5000)]
    text = " ".join(draw.choices(words, k=_WORDS))
    tokens = recipe.sampling.max_new_tokens
    length = min(round(CHARACTERS * tokens), len(text) // 2)
    rollouts = []
    for prompt in range(recipe.prompts_per_step):
        for sample in range(recipe.group_size):
            begin = draw.randrange(len(text) - length)
            answer = f" \\boxed{{{prompt + sample % 2}}}"
            rollouts.append(
                Rollout(
                    prompt=prompt,
                    agent=agent,
                    sample=sample,
                    policy_version=0,
                    text=text[begin : begin + length] + answer,
                    logprob=-draw.random() * tokens,
                    length=tokens,
                    finished=True,
                )
            )
    return rollouts


def peak_bytes() -> int:
    """Most bytes that this process ever held; Linux counts in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()

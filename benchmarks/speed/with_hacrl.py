"""Our side: agents as a recipe makes them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray

from benchmarks.speed.turns import Side, serve
from benchmarks.speed.work import Work, prompts, rewards
from hacrl.agents.learning.algorithm import recipe_algorithm
from hacrl.algorithm.capability import CapabilityTracker
from hacrl.config import Recipe
from hacrl.fleet import Fleet, LocalFleet, open_fleet
from hacrl.records import Outcome, Pool, Rollout, Verdict, Verified
from hacrl.training.loop import by_learner, joint_set

__all__ = [
    "HacrlWork",
    "Steps",
    "recipe_of",
    "serve_on_ray",
    "serve_sampling",
    "serve_steps",
    "serve_updates",
]


@dataclass(frozen=True, slots=True)
class HacrlWork:
    """Args:
    folders: of each agent's model.
    changes: keys of the recipe, nested.
    """

    work: Work
    folders: Mapping[str, Path]
    changes: dict[str, Any] = field(default_factory=dict)


def recipe_of(job: HacrlWork) -> Recipe:
    """GSPO for one agent, HACPO for several."""
    work = job.work
    return Recipe.model_validate(
        {
            "name": "speed",
            "steps": 10_000,
            "prompts_per_step": work.prompts,
            "agents": {
                name: {"model": str(folder), "device": "cpu"}
                for name, folder in job.folders.items()
            },
            "tasks": {
                "arithmetic": {
                    "source": {"type": "jsonl", "path": "unused"},
                    "verifier": {"type": "exact"},
                }
            },
            "sampling": {"group_size": work.group_size, "max_new_tokens": work.max_new_tokens},
            **job.changes,
        }
    )


def _pool_of(step: int, work: Work, rollouts: Mapping[str, Sequence[Rollout]]) -> Pool:
    """Rollouts with the rewards that the work gives them."""
    values = rewards(work)
    return Pool(
        step=step,
        agents=tuple(rollouts),
        prompts=tuple(prompts(work)),
        group_size=work.group_size,
        rows=tuple(
            Verified(rollout, Verdict(value, Outcome.RIGHT if value else Outcome.WRONG))
            for own in rollouts.values()
            for rollout, value in zip(own, values, strict=True)
        ),
    )


class Steps:
    """The phases of a step, without a run folder."""

    def __init__(self, job: HacrlWork, fleet: Fleet | None = None) -> None:
        self._work = job.work
        recipe = recipe_of(job)
        self._fleet = fleet or LocalFleet.from_recipe(recipe)
        self._algorithm = recipe_algorithm(recipe)
        self._sharing = {name: recipe.sources(name) for name in recipe.learners}
        self._capability = CapabilityTracker(self._fleet.agents, 5, "mean_reward", 10.0)
        self._asked = prompts(job.work)
        self._step = 0

    def sample(self) -> Mapping[str, Sequence[Rollout]]:
        """Every agent's responses."""
        self._step += 1
        return self._fleet.sample(self._asked, self._work.group_size, occasion=f"step {self._step}")

    def learn(self, rollouts: Mapping[str, Sequence[Rollout]]) -> None:
        """Every agent's updates."""
        pool = _pool_of(self._step, self._work, rollouts)
        self._capability.observe(pool.rewards())
        joint = joint_set(pool, self._capability.ratios(), self._sharing)
        judgement = self._algorithm.judge(joint)
        self._fleet.learn(pool, by_learner(judgement, pool.agents, self._sharing))


def serve_steps(side: Side, job: HacrlWork) -> None:
    """One step a turn, from sampling to the updates of all agents."""
    steps = Steps(job)
    serve(side, lambda: steps.learn(steps.sample()))


def serve_on_ray(side: Side, job: HacrlWork) -> None:
    """The same on Ray, where every agent has a process of its own."""
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "1"
    # Cores are given by threads; Ray shall not wait for one that others are measured on.
    ray.init(address="local", num_cpus=len(job.folders), include_dashboard=False)
    with (
        tempfile.TemporaryDirectory() as scratch,
        open_fleet(recipe_of(job), Path(scratch) / "run", lambda _: None) as load,
    ):
        steps = Steps(job, load(None))
        serve(side, lambda: steps.learn(steps.sample()))


def serve_updates(side: Side, job: HacrlWork) -> None:
    """The learning of one step a turn, always from the same rollouts."""
    steps = Steps(job)
    rollouts = steps.sample()
    serve(side, lambda: steps.learn(rollouts))


def serve_sampling(side: Side, job: HacrlWork) -> None:
    """The sampling of one step a turn."""
    serve(side, Steps(job).sample)

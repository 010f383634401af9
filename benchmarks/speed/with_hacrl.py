"""Our side: agents as a recipe makes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.speed.turns import Side, serve
from benchmarks.speed.work import Work, prompts, rewards
from hacrl.capability import CapabilityTracker
from hacrl.config import Recipe
from hacrl.fleet import LocalFleet
from hacrl.records import Outcome, Pool, Rollout, Verdict, Verified

__all__ = ["HacrlWork", "pool_of", "recipe_of", "serve_hacrl"]


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


def pool_of(step: int, work: Work, rollouts: Mapping[str, list[Rollout]]) -> Pool:
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


def serve_hacrl(side: Side, job: HacrlWork) -> None:
    """One step a turn, from sampling to the updates of all agents."""
    recipe = recipe_of(job)
    fleet = LocalFleet.from_recipe(recipe)
    capability = CapabilityTracker(fleet.agents, 5, "mean_reward", 10.0)
    asked = prompts(job.work)
    steps = iter(range(recipe.steps))

    def step() -> None:
        number = next(steps)
        rollouts = fleet.sample(asked, recipe.group_size, occasion=f"step {number}")
        pool = pool_of(number, job.work, rollouts)
        capability.observe(pool.rewards())
        fleet.learn(pool, capability.ratios())

    serve(side, step)

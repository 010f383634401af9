"""Which differences of a recipe matter to a run that goes on."""

from __future__ import annotations

from typing import Any

import pytest

from hacrl.config import Recipe, recipe_from_dict
from hacrl.config.changes import changes

RAW: dict[str, Any] = {
    "name": "r",
    "steps": 4,
    "prompts_per_step": 2,
    "agents": {"kim": {"model": "a/b"}, "lee": {"model": "c/d"}},
    "tasks": {"t": {"source": {"type": "jsonl", "path": "x.jsonl"}, "verifier": {"type": "exact"}}},
}


def recipe(*overrides: str) -> Recipe:
    return recipe_from_dict(RAW, overrides)


def test_a_recipe_does_not_differ_from_itself() -> None:
    assert changes(recipe(), recipe()) == []


@pytest.mark.parametrize(
    "override",
    [
        "steps=9",
        "threads=1",
        "checkpoints.every=3",
        "checkpoints.best=reward",
        "verification.workers=2",
        "update.micro_batch_tokens=64",
        "update.gradient_checkpointing=true",
        "sampling.batch_size=8",
        "agents.kim.device=cpu",
        "agents.kim.resources.cpus=2",
        "agents.kim.resources.gpus=1",
        "fleet.type=ray",
        "fleet.address=auto",
        "tasks.t.source.path=elsewhere.jsonl",
        "tasks.t.source.limit=3",
    ],
)
def test_harmless(override: str) -> None:
    (change,) = changes(recipe(), recipe(override))
    assert change.harmless
    assert change.key == override.partition("=")[0]


@pytest.mark.parametrize(
    "override",
    [
        "seed=1",
        "prompts_per_step=4",
        "sampling.group_size=4",
        "sampling.temperature=0.5",
        "optimizer.learning_rate=1e-3",
        "ratio.alpha=2",
        "clip.delta=0.3",
        "capability.window=2",
        "agents.kim.model=a/c",
        "agents.kim.learning_rate=1e-3",
        "agents.kim.lora={rank: 2}",
        "tasks.t.verifier.type=math",
        "tasks.t.weight=2",
        "sharing=nobody",
        "update.kl=0.1",
    ],
)
def test_serious(override: str) -> None:
    found = changes(recipe(), recipe(override))
    assert any(not change.harmless for change in found)


def test_what_was_and_what_is_are_shown() -> None:
    (change,) = changes(recipe(), recipe("optimizer.learning_rate=0.002"))
    assert str(change) == "optimizer.learning_rate was 1e-06, is 0.002"
    (before,) = changes(recipe(), recipe("agents.lee.chat_template=x.jinja"))
    assert str(before) == "agents.lee.chat_template was None, is 'x.jinja'"


def test_more_steps_matter_where_the_learning_rate_is_planned_towards_the_end() -> None:
    planned = "optimizer.schedule=cosine"
    (change,) = changes(recipe(planned), recipe(planned, "steps=9"))
    assert not change.harmless


def test_an_evaluation_and_other_methods_names_can_come_and_go() -> None:
    held = f"evaluation.tasks={{h: {RAW['tasks']['t']}}}"
    assert all(change.harmless for change in changes(recipe(), recipe(held)))
    assert all(change.harmless for change in changes(recipe(held), recipe()))
    assert any(not change.harmless for change in changes(recipe(), recipe("method=gspo")))

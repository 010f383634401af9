"""Where agents live, as a recipe says it."""

from __future__ import annotations

from typing import Any

import pytest

from hacrl.config import Recipe, recipe_from_dict, recipe_to_yaml
from hacrl.config.text import parse_yaml
from hacrl.errors import UserError

RAW: dict[str, Any] = {
    "name": "r",
    "steps": 4,
    "prompts_per_step": 2,
    "agents": {"kim": {"model": "a/b"}, "lee": {"model": "c/d"}},
    "tasks": {"t": {"source": {"type": "jsonl", "path": "x.jsonl"}, "verifier": {"type": "exact"}}},
}


def recipe(*overrides: str, **changes: Any) -> Recipe:
    return recipe_from_dict(RAW | changes, overrides)


def test_a_name_is_short_for_its_type() -> None:
    assert recipe().fleet.type == "local"
    assert recipe(fleet="ray").fleet == recipe("fleet.type=ray").fleet == recipe("fleet=ray").fleet


def test_a_resolved_recipe_says_the_same() -> None:
    whole = recipe(
        "fleet={type: ray, address: auto, retries: 0, on_peer_failure: continue}",
        "agents.kim.resources={cpus: 2, gpus: 0.5, custom: {spot: 1}, node: {zone: b}}",
    )
    assert recipe_from_dict(parse_yaml(recipe_to_yaml(whole), "it")) == whole


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("fleet=slurm", "fleet.type: "),
        ("fleet={type: ray, retrys: 1}", "unknown key fleet.retrys; did you mean retries?"),
        ("fleet.seconds=0", "fleet.seconds: "),
        ("agents.kim.resources.gpu=1", "resources.gpu; did you mean gpus?"),
        ("agents.kim.resources.cpus=0", "agents.kim.resources.cpus: "),
    ],
)
def test_what_is_wrong_is_named(override: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        recipe(override)
    assert message in str(caught.value)

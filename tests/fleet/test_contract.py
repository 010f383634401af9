"""Where agents live changes nothing about what they learn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hacrl.config import recipe_from_dict
from hacrl.training.train import train
from scripts.crash_test.comparing import differences

MakeRecipe = Callable[..., dict[str, Any]]
WIDE = {"clip": {"delta": 0.9, "own_low": 0.3, "own_high": 0.3}}
WHERE = {"recipe.yaml"}
"""Says where the agents live."""


def differing(one: Path, other: Path) -> list[str]:
    return [name for name in differences(one, other) if Path(name).name not in WHERE]


@pytest.mark.usefixtures("started_ray")
def test_pools_metrics_weights_and_checkpoints_are_the_same(
    tiny_recipe: MakeRecipe, tmp_path: Path
) -> None:
    raw = tiny_recipe(**WIDE, checkpoints={"every": 2}, update={"kl": 0.01, "mini_batches": 2})
    raw["agents"]["lee"]["lora"] = {"rank": 4}  # and kim trains all its weights
    raw["evaluation"] = {"tasks": {"held": raw["tasks"]["bits"]}, "every": 3, "limit": 5}
    local = train(recipe_from_dict(raw, ["fleet=local"]), tmp_path / "local").path
    there = train(recipe_from_dict(raw, ["fleet=ray"]), tmp_path / "ray").path
    assert differing(local, there) == []
    for name in ("rollouts/step-000002.parquet", "agents/kim/model.safetensors"):
        assert (there / name).is_file()
    # Each goes on where the other stopped.
    onwards = ["steps=4"]
    local = train(recipe_from_dict(raw, [*onwards, "fleet=ray"]), tmp_path / "local", resume=True)
    there = train(recipe_from_dict(raw, [*onwards, "fleet=local"]), tmp_path / "ray", resume=True)
    assert differing(local.path, there.path) == []


@pytest.mark.usefixtures("started_ray")
def test_what_does_not_learn_gives_the_same_wherever_it_lives(
    tiny_recipe: MakeRecipe, tmp_path: Path
) -> None:
    raw = tiny_recipe(**WIDE, steps=2, checkpoints={"every": 1})
    earlier = train(recipe_from_dict(raw, ["name=earlier", "steps=1"]), tmp_path).path
    raw["agents"]["lee"]["learns"] = False
    raw["agents"]["old"] = {"from": "recording", "path": str(earlier), "agent": "lee"}
    raw["evaluation"] = {"tasks": {"held": raw["tasks"]["bits"]}, "limit": 5}
    local = train(recipe_from_dict(raw, ["fleet=local"]), tmp_path / "local").path
    there = train(recipe_from_dict(raw, ["fleet=ray"]), tmp_path / "ray").path
    assert differing(local, there) == []
    assert [path.name for path in (there / "agents").iterdir()] == ["kim"]

"""Valid recipes that will disappoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from hacrl.config import recipe_from_dict
from hacrl.config.cautions import cautions
from hacrl.errors import UserError


@pytest.mark.parametrize(
    ("dtype", "rate", "lost"),
    [
        ("float32", 1e-6, False),
        ("bfloat16", 1e-6, True),
        ("bfloat16", 1e-3, False),
    ],
)
def test_steps_that_half_precision_rounds_away(
    tiny_recipe: Callable[..., dict[str, Any]], dtype: str, rate: float, lost: bool
) -> None:
    recipe = recipe_from_dict(
        tiny_recipe(), [f"agents.kim.dtype={dtype}", f"agents.kim.learning_rate={rate}"]
    )
    found = [text for text in cautions(recipe) if "rounded away" in text]
    assert [text.split(":")[0] for text in found] == ["agents.kim.dtype"] * lost
    weight = torch.full((), 0.02, dtype=getattr(torch, dtype))
    assert bool(weight - rate == weight) == lost


@pytest.mark.parametrize(
    ("warmup", "slow"), [(0, []), (11, []), (12, ["kim", "lee"]), (5, []), (500, ["kim", "lee"])]
)
def test_a_warm_up_that_the_run_does_not_outlast(
    tiny_recipe: Callable[..., dict[str, Any]], warmup: int, slow: list[str]
) -> None:
    """3 steps of 2·2 updates are 12 in all."""
    raw = tiny_recipe(update={"mini_batches": 2})
    recipe = recipe_from_dict(raw, [f"optimizer.warmup_updates={warmup}"])
    found = cautions(recipe)
    assert len(found) == len(slow)
    for name, text in zip(slow, found, strict=True):
        assert text.startswith(f"optimizer.warmup_updates: agent {name} makes 12 updates in all")


@pytest.mark.parametrize(
    ("dtype", "second", "stuck"),
    [("float32", 0.999, False), ("bfloat16", 0.999, True), ("bfloat16", 0.95, False)],
)
def test_a_second_moment_that_cannot_fall_in_half_precision(
    tiny_recipe: Callable[..., dict[str, Any]], dtype: str, second: float, stuck: bool
) -> None:
    overrides = [f"agents.kim.dtype={dtype}", f"optimizer.betas=[0.9, {second}]"]
    found = cautions(recipe_from_dict(tiny_recipe(), overrides))
    assert any("moments" in text for text in found) == stuck
    moment = torch.full((), 0.01, dtype=getattr(torch, dtype))
    assert bool(moment * second == moment) == stuck


def test_an_adapter_rounds_nothing_away(tiny_recipe: Callable[..., dict[str, Any]]) -> None:
    overrides = ["agents.kim.lora.rank=2", "optimizer.learning_rate=1e-6"]
    assert (
        cautions(recipe_from_dict(tiny_recipe(), [*overrides, "agents.kim.dtype=bfloat16"])) == []
    )
    (half,) = cautions(recipe_from_dict(tiny_recipe(), [*overrides, "agents.kim.dtype=float16"]))
    assert half.startswith("agents.kim.dtype: gradients below 6e-8")


def test_float16_trains_no_whole_model(tiny_recipe: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(
        UserError, match=r"agents\.kim\.dtype: float16 cannot hold what AdamW keeps"
    ):
        recipe_from_dict(tiny_recipe(), ["agents.kim.dtype=float16"])
    assert torch.tensor(1e-8, dtype=torch.float16) == 0

"""Valid recipes that will disappoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from hacrl.config import recipe_from_dict
from hacrl.config.cautions import cautions


@pytest.mark.parametrize(
    ("dtype", "rate", "lost"),
    [
        ("float32", 1e-6, False),
        ("bfloat16", 1e-6, True),
        ("bfloat16", 1e-3, False),
        ("float16", 1e-6, True),
        ("float16", 1e-5, False),
    ],
)
def test_steps_that_half_precision_rounds_away(
    tiny_recipe: Callable[..., dict[str, Any]], dtype: str, rate: float, lost: bool
) -> None:
    recipe = recipe_from_dict(
        tiny_recipe(), [f"agents.kim.dtype={dtype}", f"agents.kim.learning_rate={rate}"]
    )
    assert [text.split(":")[0] for text in cautions(recipe)] == ["agents.kim.dtype"] * lost
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

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

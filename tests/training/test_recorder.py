"""The score by which the best checkpoint is chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hacrl.config import recipe_from_dict
from hacrl.console.observer import Silent
from hacrl.runs.folder import RunFolder
from hacrl.training.loggers import Loggers
from hacrl.training.recorder import Recorder

MakeRecipe = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("values", "score"),
    [
        ({"kim": 0.5, "lee": 0.25}, 0.375),
        ({"kim": 0.5, "lee": None}, 0.5),
        ({"kim": 0.5}, None),  # lee is missing, and the mean of the others is no score of all
        ({"kim": None, "lee": None}, None),
    ],
)
def test_only_evaluations_of_all_agents_have_a_score(
    tiny_recipe: MakeRecipe, tmp_path: Path, values: dict[str, float | None], score: float | None
) -> None:
    raw = tiny_recipe(checkpoints={"best": "held"})
    raw["evaluation"] = {"tasks": {"held": raw["tasks"]["bits"]}, "every": 1}
    recipe = recipe_from_dict(raw)
    loggers = Loggers(recipe, tmp_path, Silent().note, 0)
    recorder = Recorder(recipe, RunFolder(tmp_path), Silent(), loggers, 0)
    recorder.evaluation(
        [{"step": 1, "agent": a, "task": "held", "value": value} for a, value in values.items()]
    )
    assert recorder.score == score

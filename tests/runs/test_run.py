"""A run is read as tables, and never changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hacrl.config import recipe_from_dict
from hacrl.errors import UserError
from hacrl.runs.run import Run
from hacrl.training.train import train


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_what_a_run_left_is_tables(
    tiny_recipe: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    recipe = recipe_from_dict(tiny_recipe(steps=2))
    run = train(recipe, tmp_path)
    before = contents(run.path)
    rollouts, lessons, metrics = run.rollouts(), run.lessons(), run.metrics()
    assert rollouts.num_rows == 2 * 2 * 8 * 8
    assert lessons.num_rows == 2 * rollouts.num_rows
    assert sorted(set(lessons["step"].to_pylist())) == [0, 1]
    keys = {(r["step"], r["agent"], r["prompt"], r["sample"]) for r in rollouts.to_pylist()}
    assert len(keys) == rollouts.num_rows
    assert {(r["step"], r["agent"], r["prompt"], r["sample"]) for r in lessons.to_pylist()} == keys
    assert metrics.num_rows == 4
    assert metrics["reward"].to_pylist()[0] == pytest.approx(
        sum(r["reward"] for r in rollouts.to_pylist() if (r["step"], r["agent"]) == (0, "kim")) / 64
    )
    assert run.recipe == recipe
    assert run.state == "finished"
    assert [*run.agents] == ["kim", "lee"]
    assert (run.agents["lee"] / "model.safetensors").is_file()
    assert contents(run.path) == before


def test_a_run_that_has_hardly_begun_has_empty_tables(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text("")
    run = Run(tmp_path)
    assert [run.rollouts().num_rows, run.lessons().num_rows, run.metrics().num_rows] == [0, 0, 0]
    assert run.agents == {}


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no run folder"):
        Run(tmp_path)

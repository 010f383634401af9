"""A sharing rule of the user's, named in a recipe."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from hacrl.config import load_recipe, recipe_from_dict
from hacrl.errors import UserError
from hacrl.training.preparing import prepare
from hacrl.training.train import train

MakeRecipe = Callable[..., dict[str, Any]]
RULES = "tests.training.rules"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "own.md"


def metrics(run: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{key: row[key] for key in row.keys() - {"seconds"}} for row in rows]


def with_rule(raw: dict[str, Any], name: str) -> dict[str, Any]:
    return raw | {"method": {"type": "python", "function": f"{RULES}:{name}"}}


def test_a_rule_decides_what_is_learned(tiny_recipe: MakeRecipe, tmp_path: Path) -> None:
    raw = tiny_recipe(steps=2)
    by_name = train(recipe_from_dict(raw), tmp_path / "name").path
    by_rule = train(recipe_from_dict(with_rule(raw, "as_hacpo")), tmp_path / "rule").path
    alone = train(recipe_from_dict(with_rule(raw, "own_alone")), tmp_path / "alone").path
    assert metrics(by_rule) == metrics(by_name) != metrics(alone)
    for row in metrics(alone):
        (peers,) = row["sources"].values()
        assert row["alone"] is True
        assert peers["left_out"] == {"not_used": peers["rows"]}
        assert peers["computed"] == 0 < row["own"]["computed"]


def test_a_run_with_a_rule_is_resumed_with_the_same_rule(
    tiny_recipe: MakeRecipe, tmp_path: Path
) -> None:
    raw = with_rule(tiny_recipe(steps=1, checkpoints={"every": 1}), "as_hacpo")
    run = train(recipe_from_dict(raw), tmp_path)
    resolved = load_recipe(run.path / "recipe.yaml")
    assert resolved == recipe_from_dict(raw)
    train(load_recipe(run.path / "recipe.yaml", ["steps=2"]), tmp_path, resume=True)
    assert [row["step"] for row in metrics(run.path)] == [0, 0, 1, 1]
    other = recipe_from_dict(with_rule(raw | {"steps": 3}, "own_alone"))
    with pytest.raises(UserError, match=r"method\.function"):
        train(other, tmp_path, resume=True)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("nothing", "has no nothing"),
        ("too_few", "must return a tensor of advantages of the shape (2, 2, 2, 2)"),
        ("a_list", "it gave list"),
        ("infinite", "an infinite advantage"),
        ("fails", "failed (RuntimeError: no idea)"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_before_anything_is_made(
    tiny_recipe: MakeRecipe, tmp_path: Path, name: str, part: str
) -> None:
    recipe = recipe_from_dict(with_rule(tiny_recipe(), name))
    for refuse in (
        lambda: train(recipe, tmp_path),
        lambda: prepare(recipe),
    ):
        with pytest.raises(UserError) as caught:
            refuse()
        assert part in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1
    assert not (tmp_path / "tiny").exists()


def test_a_rule_that_fails_in_a_step_ends_the_run_in_a_line(
    tiny_recipe: MakeRecipe, tmp_path: Path
) -> None:
    recipe = recipe_from_dict(with_rule(tiny_recipe(), "fails_later"))
    with pytest.raises(UserError, match="more prompts than in the example"):
        train(recipe, tmp_path)
    assert json.loads((tmp_path / "tiny" / "state.json").read_text())["state"] == "failed"


def test_the_rule_of_the_manual_trains(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = re.findall(r"```python\n(# my_rules\.py\n.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(code.splitlines()) <= 30
    (tmp_path / "my_rules.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (section,) = re.findall(r"```yaml\n(method:.*?)```", PAGE.read_text(), re.DOTALL)
    try:
        run = train(recipe_from_dict(tiny_recipe(steps=2) | yaml.safe_load(section)), tmp_path)
    finally:
        sys.modules.pop("my_rules", None)
    lessons = pq.read_table(run.path / "lessons").to_pylist()
    used = [row for row in lessons if row["learner"] != row["agent"] and row["left_out"] is None]
    assert all(row["advantage"] == 1.0 for row in used)

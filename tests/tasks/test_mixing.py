"""Several tasks in one run: what is trained on, measured and shown."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from rich.console import Console

from hacrl.cli.check import print_preparation
from hacrl.config import recipe_from_dict
from hacrl.errors import UserError
from hacrl.records import Outcome, Prompt, Verdict
from hacrl.runs.run import Run
from hacrl.training.preparing import prepare
from hacrl.training.train import train
from hacrl.verify import Exact, VerifierPool

Make = Callable[..., dict[str, Any]]


class _Broken(Exact):
    """Scores nothing."""

    def screen(self, prompt: Prompt, response: str) -> Verdict:
        return Verdict(None, Outcome.NOT_VERIFIABLE)


@pytest.fixture
def two_tasks(tiny_recipe: Make, tmp_path: Path) -> dict[str, Any]:
    """Of 8 prompts a step, 6 are of `bits`, which has 28, and 2 of `ones`, which has 3."""
    raw = tiny_recipe()
    path = tmp_path / "ones.jsonl"
    path.write_text("".join(f'{{"question": "1+{i}=", "answer": "1"}}\n' for i in "010"))
    raw["tasks"]["bits"]["weight"] = 3
    raw["tasks"]["ones"] = copy.deepcopy(raw["tasks"]["bits"]) | {"weight": 1}
    raw["tasks"]["ones"]["source"]["path"] = str(path)
    return raw


def rows(run: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]


def test_tasks_are_mixed_and_measured_apart(two_tasks: dict[str, Any], tmp_path: Path) -> None:
    run = train(recipe_from_dict(two_tasks), tmp_path)
    for row in rows(run):
        file = run.path / "rollouts" / f"step-{row['step']:06d}.parquet"
        stored = [r for r in parquet.read_table(file).to_pylist() if r["agent"] == row["agent"]]
        assert list(row["tasks"]) == ["bits", "ones"]
        for name, size in (("bits", 48), ("ones", 16)):
            own = [r for r in stored if r["prompt_id"].startswith(f"{name}/")]
            measured = row["tasks"][name]
            assert len(own) == measured["scored"] == size
            assert measured["unscored"] == 0
            assert measured["reward"] == pytest.approx(sum(r["reward"] for r in own) / size)
            assert sum(measured["outcomes"].values()) == size
        assert row["reward"] == pytest.approx(
            sum(m["reward"] * m["scored"] for m in row["tasks"].values()) / 64
        )


def test_a_task_without_scores_is_a_gap(
    two_tasks: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "hacrl.training.train.make_pool",
        lambda tasks, rule: VerifierPool({"bits": Exact(None), "ones": _Broken(None)}),
    )
    two_tasks["tasks"]["bits"]["weight"] = 15  # one of 16 prompts is of `ones`: every other step
    for row in rows(train(recipe_from_dict(two_tasks), tmp_path)):
        ones = row["tasks"]["ones"]
        assert ones["reward"] is None
        assert ones["scored"] == 0
        assert ones["outcomes"].get("not_verifiable", 0) == ones["unscored"]
        assert ones["unscored"] == (8 if row["step"] == 1 else 0)
        assert row["reward"] == row["tasks"]["bits"]["reward"]


def test_a_single_task_is_not_shown_apart(tiny_recipe: Make, tmp_path: Path) -> None:
    assert "tasks" not in rows(train(recipe_from_dict(tiny_recipe(steps=1)), tmp_path))[0]


def test_check_shows_what_is_mixed(two_tasks: dict[str, Any]) -> None:
    console = Console(file=io.StringIO(), width=120)
    recipe = recipe_from_dict(two_tasks)
    print_preparation(recipe, prepare(recipe), console)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    (bits,) = (line.split() for line in lines if line.startswith("bits"))
    (ones,) = (line.split() for line in lines if line.startswith("ones"))
    assert bits == ["bits", "jsonl", "exact", "28", "28", "75.0%", "0.64"]
    assert ones == ["ones", "jsonl", "exact", "3", "3", "25.0%", "2.00"]


def test_a_task_that_is_emptied_by_the_length_limit_is_named(
    two_tasks: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "ones.jsonl"
    path.write_text(json.dumps({"question": "1" * 50, "answer": "1"}))
    two_tasks["prompts"] = {"max_tokens": 20}
    with pytest.raises(UserError, match=r"none remain of tasks\.ones: raise prompts\.max_tokens"):
        train(recipe_from_dict(two_tasks), tmp_path / "runs")
    assert not (tmp_path / "runs").exists()

"""Runs to report on: a real one of two agents, and ways to damage a copy of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from hacrl.config import recipe_from_dict
from hacrl.report import drawing

CopyRun = Callable[..., Path]
MakeRun = Callable[..., Path]

WIDE = {"delta": 1.0, "delta_step": 0.1, "own_low": 0.3, "own_high": 0.3}


@pytest.fixture
def make_run(tiny_recipe: Callable[..., dict[str, Any]], tmp_path: Path) -> MakeRun:
    """Trains for real; arguments replace top keys of the recipe."""

    from hacrl.training.train import train  # imports torch, which charts alone do not need

    def make(name: str, **changes: Any) -> Path:
        raw = tiny_recipe(name=name, clip=WIDE, **changes)
        return train(recipe_from_dict(raw), tmp_path).path

    return make


@pytest.fixture(scope="session")
def whole_run(
    qwen_folder: Path,
    llama_folder: Path,
    problems_file: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A run of two agents, four steps, evaluations and alignment, to be read only."""
    from hacrl.training.train import train

    task = {
        "source": {"type": "jsonl", "path": str(problems_file)},
        "verifier": {"type": "exact", "marker": None},
    }
    raw = {
        "name": "pair",
        "steps": 4,
        "prompts_per_step": 4,
        "agents": {"kim": {"model": str(qwen_folder)}, "lee": {"model": str(llama_folder)}},
        "tasks": {"bits": task},
        "sampling": {"group_size": 4, "max_new_tokens": 4},
        "optimizer": {"learning_rate": 1e-3},
        "clip": WIDE,
        "update": {"alignment_every": 2, "mini_batches": 2},
        "evaluation": {"tasks": {"bits": task}, "every": 2, "at_start": True, "limit": 4},
    }
    return train(recipe_from_dict(raw), tmp_path_factory.mktemp("runs")).path


@pytest.fixture
def copy_run(whole_run: Path, tmp_path: Path) -> CopyRun:
    """A copy of the whole run, without weights."""

    def copied(place: str = "pair", **recipe: Any) -> Path:
        folder = tmp_path / place
        shutil.copytree(whole_run, folder, ignore=shutil.ignore_patterns("agents"))
        text = (folder / "recipe.yaml").read_text()
        for key, value in {"name": folder.name, **recipe}.items():
            old = next(line for line in text.splitlines() if line.startswith(f"{key}:"))
            text = text.replace(old, f"{key}: {value}", 1)
        (folder / "recipe.yaml").write_text(text)
        return folder

    return copied


@pytest.fixture
def only_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the charts in a page, those are drawn that compare runs; the others are left as sketches.

    For tests that look at several runs, whose own charts take most of the time.
    """
    whole = drawing._svg

    def svg(figure: Figure, name: str) -> str:
        compares = name.startswith(("learning-", "held-out-", "cost-"))
        return whole(figure, name) if compares else f'<svg id="{name}"/>'

    monkeypatch.setattr(drawing, "_svg", svg)


@pytest.fixture
def unarranged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are drawn as they are, without the arrangement that takes half of the time.

    For tests of what can be drawn at all.
    """
    monkeypatch.setattr(drawing, "Figure", lambda figsize, layout: Figure(figsize))


def change_metrics(folder: Path, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    """Rewrite `metrics.jsonl` row by row; None drops the row."""
    path = folder / "metrics.jsonl"
    rows = [change(json.loads(line)) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows if row is not None))

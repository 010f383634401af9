"""`hacrl runs`: what people see of it."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hacrl.cli.app import app
from hacrl.cli.runs import age, print_runs
from hacrl.runs.listing import find_runs

NOW = 1_000_000_000.0


def make(folder: Path, state: str, rewards: list[tuple[float | None, float | None]]) -> Path:
    (folder / "rollouts").mkdir(parents=True)
    recipe = "method: hacpo\nsteps: 60\nagents:\n  kim: {}\n  lee: {}\n"
    (folder / "recipe.yaml").write_text(recipe)
    (folder / "state.json").write_text(json.dumps({"state": state}))
    lines = [
        json.dumps({"step": step, "agent": agent, "reward": reward})
        for step, pair in enumerate(rewards)
        for agent, reward in zip(("kim", "lee"), pair, strict=True)
    ]
    if lines:
        (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def written(folder: Path, seconds_ago: float) -> None:
    for path in (*folder.iterdir(), folder):
        os.utime(path, (NOW - seconds_ago,) * 2)


def listed(root: Path, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_runs(list(find_runs(root)), NOW, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_a_table_of_all_runs_the_latest_last(tmp_path: Path) -> None:
    written(make(tmp_path / "first", "finished", [(0.1, 0.2), (0.25, None)]), 7200)
    written(make(tmp_path / "deep" / "second", "running", []), 12)
    with (tmp_path / "first" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "agent": "kim", "rew')
    os.utime(tmp_path / "first" / "metrics.jsonl", (NOW - 7200,) * 2)
    head, first, second = listed(tmp_path).splitlines()
    assert head.split() == ["run", "method", "state", "step", "last", "reward", "last", "write"]
    assert first.split() == [
        *("first", "hacpo", "finished", "2/60", "kim", "0.25", "lee", "-", "2h", "ago")
    ]
    assert second.split() == [
        *("deep/second", "hacpo", "running", "0/60", "kim", "-", "lee", "-", "12s", "ago")
    ]


def test_a_long_silence_is_remarked_on_and_not_explained_away(tmp_path: Path) -> None:
    written(make(tmp_path / "quiet", "running", [(0.1, 0.2)]), 3 * 86_400)
    written(make(tmp_path / "busy", "running", [(0.1, 0.2)]), 30)
    text = listed(tmp_path)
    assert "running" in text
    assert "3d ago" in text
    (note,) = (line for line in text.splitlines() if line.startswith("note:"))
    assert note.startswith("note: quiet: not finished, and nothing written for over 10m; either")


def test_a_wide_table_stays_within_the_terminal(tmp_path: Path) -> None:
    written(make(tmp_path / ("a-long-name-" * 5), "interrupted", [(0.1, 0.2)]), 0)
    lines = listed(tmp_path, width=60).splitlines()
    assert max(map(len, lines)) <= 60


def test_nothing_to_list_is_said(tmp_path: Path) -> None:
    for folder, message in (
        (tmp_path / "none", "there is no such folder"),
        (tmp_path, "holds no runs; start one with hacrl train RECIPE"),
    ):
        result = CliRunner().invoke(app, ["runs", str(folder)])
        assert result.exit_code == 2
        assert message in result.stderr


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0s"), (59.9, "59s"), (60, "1m"), (3599, "59m"), (7200, "2h"), (200_000, "2d")],
)
def test_ages(seconds: float, text: str) -> None:
    assert age(seconds) == text

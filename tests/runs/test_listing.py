"""`hacrl runs`: what is listed, and that it claims no more than the files tell."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hacrl.errors import UserError
from hacrl.runs import listing
from hacrl.runs.listing import age, find_runs, list_runs

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


def listed(root: Path, monkeypatch: pytest.MonkeyPatch, width: int = 80) -> str:
    monkeypatch.setattr(listing.time, "time", lambda: NOW)
    console = Console(file=io.StringIO(), width=width)
    list_runs(root, console)
    text: Any = console.file
    return str(text.getvalue())


def test_a_table_of_all_runs_the_latest_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(make(tmp_path / "first", "finished", [(0.1, 0.2), (0.25, None)]), 7200)
    written(make(tmp_path / "deep" / "second", "running", []), 12)
    with (tmp_path / "first" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "agent": "kim", "rew')
    os.utime(tmp_path / "first" / "metrics.jsonl", (NOW - 7200,) * 2)
    head, first, second = listed(tmp_path, monkeypatch).splitlines()
    assert head.split() == ["run", "method", "state", "step", "last", "reward", "last", "write"]
    assert first.split() == [
        *("first", "hacpo", "finished", "2/60", "kim", "0.25", "lee", "-", "2h", "ago")
    ]
    assert second.split() == [
        *("deep/second", "hacpo", "running", "0/60", "kim", "-", "lee", "-", "12s", "ago")
    ]


def test_a_long_silence_is_remarked_on_and_not_explained_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(make(tmp_path / "quiet", "running", [(0.1, 0.2)]), 3 * 86_400)
    written(make(tmp_path / "busy", "running", [(0.1, 0.2)]), 30)
    text = listed(tmp_path, monkeypatch)
    assert "running" in text
    assert "3d ago" in text
    (note,) = (line for line in text.splitlines() if line.startswith("note:"))
    assert note.startswith("note: quiet: not finished, and nothing written for over 10m; either")


def test_a_run_folder_lists_itself(tmp_path: Path) -> None:
    (run,) = find_runs(make(tmp_path / "alone", "failed", []))
    assert (run.name, run.state) == ("alone", "failed")


def test_what_is_damaged_is_shown_as_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "bad", "finished", [])
    (folder / "recipe.yaml").write_text("a: [")
    (folder / "state.json").write_text("{")
    (folder / "metrics.jsonl").write_bytes(b"\xff\n[]\n")
    written(folder, 0)
    line = listed(tmp_path, monkeypatch).splitlines()[1]
    assert line.split() == ["bad", "unknown", "0/?", "0s", "ago"]


def test_a_wide_table_stays_within_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(make(tmp_path / ("a-long-name-" * 5), "interrupted", [(0.1, 0.2)]), 0)
    lines = listed(tmp_path, monkeypatch, width=60).splitlines()
    assert max(map(len, lines)) <= 60


def test_large_files_are_read_from_their_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_TAIL", 150)
    make(tmp_path / "long", "running", [(i / 100, i / 100) for i in range(50)])
    (run,) = find_runs(tmp_path)
    assert (run.done, run.rewards) == (50, {"kim": 0.49, "lee": 0.49})


def test_nothing_to_list_is_said(tmp_path: Path) -> None:
    console = Console(file=io.StringIO())
    with pytest.raises(UserError, match="there is no such folder"):
        list_runs(tmp_path / "none", console)
    with pytest.raises(UserError, match="holds no runs; hacrl train RECIPE"):
        list_runs(tmp_path, console)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0s"), (59.9, "59s"), (60, "1m"), (3599, "59m"), (7200, "2h"), (200_000, "2d")],
)
def test_ages(seconds: float, text: str) -> None:
    assert age(seconds) == text

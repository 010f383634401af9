"""What is listed of runs, and that it claims no more than the files tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hacrl.runs import listing
from hacrl.runs.listing import find_runs


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


def test_a_run_folder_lists_itself(tmp_path: Path) -> None:
    (run,) = find_runs(make(tmp_path / "alone", "failed", []))
    assert (run.name, run.state) == ("alone", "failed")


def test_what_is_damaged_is_unknown(tmp_path: Path) -> None:
    folder = make(tmp_path / "bad", "finished", [])
    (folder / "recipe.yaml").write_text("a: [")
    (folder / "state.json").write_text("{")
    (folder / "metrics.jsonl").write_bytes(b"\xff\n[]\n")
    (run,) = find_runs(tmp_path)
    assert (run.name, run.method, run.state) == ("bad", "", "unknown")
    assert (run.done, run.steps, run.rewards) == (0, None, {})


def test_large_files_are_read_from_their_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_TAIL", 150)
    make(tmp_path / "long", "running", [(i / 100, i / 100) for i in range(50)])
    (run,) = find_runs(tmp_path)
    assert (run.done, run.rewards) == (50, {"kim": 0.49, "lee": 0.49})

"""Reading runs that are whole, going on, torn, resumed or none at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hacrl.errors import UserError
from hacrl.report.reading import read_run, read_runs
from tests.report.conftest import CopyRun


def test_a_whole_run(copy_run: CopyRun) -> None:
    run = read_run(copy_run(), "pair")
    assert run.agents == ("kim", "lee")
    assert (run.state, run.completed, run.notes) == ("finished", 4, ())
    assert [row["step"] for row in run.of("lee")] == [0, 1, 2, 3]
    assert sorted({row["step"] for row in run.evaluations}) == [0, 2, 4]
    assert run.setting("sampling.group_size") == 4
    assert run.setting("sampling.nothing.deeper") is None
    assert "torch" in run.versions


def test_a_torn_last_line_is_ignored_with_a_note(copy_run: CopyRun) -> None:
    folder = copy_run()
    text = (folder / "metrics.jsonl").read_text()
    (folder / "metrics.jsonl").write_text(text[:-40])
    run = read_run(folder, "pair")
    assert len(run.rows) == 7
    assert run.notes == ("metrics.jsonl: the last line is not complete and is ignored",)


def test_damage_in_the_middle_is_counted(copy_run: CopyRun) -> None:
    folder = copy_run()
    lines = (folder / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    lines[1:4] = [b"\xff\xfe\n", b"[]\n", b'{"step": 1}\n']
    (folder / "metrics.jsonl").write_bytes(b"".join(lines))
    run = read_run(folder, "pair")
    assert len(run.rows) == 5
    assert run.notes == ("metrics.jsonl: 3 damaged lines are ignored",)


def test_of_lines_written_again_the_last_count(copy_run: CopyRun) -> None:
    folder = copy_run()
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    again = [json.loads(line) | {"reward": 0.75} for line in lines[4:6]]
    (folder / "metrics.jsonl").write_text(
        "".join(f"{line}\n" for line in [*lines, *map(json.dumps, again)])
    )
    run = read_run(folder, "pair")
    assert [row["step"] for row in run.rows] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [row["reward"] for row in run.rows if row["step"] == 2] == [0.75, 0.75]
    assert "2 lines were written again, as after a resume" in run.notes[0]


def test_a_run_that_has_only_begun(copy_run: CopyRun) -> None:
    folder = copy_run()
    for name in ("metrics.jsonl", "evaluations.jsonl", "state.json"):
        (folder / name).unlink()
    run = read_run(folder, "pair")
    assert (run.agents, run.rows, run.completed) == (("kim", "lee"), (), 0)
    assert run.state == "unknown"
    assert run.notes == ("state.json is missing or damaged",)


def test_a_damaged_recipe_leaves_the_metrics(copy_run: CopyRun) -> None:
    folder = copy_run()
    (folder / "recipe.yaml").write_text("a: [")
    run = read_run(folder, "pair")
    assert run.agents == ("kim", "lee")
    assert run.notes == ("recipe.yaml is missing or damaged",)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such folder; name a run"):
        read_run(tmp_path / "none", "x")
    with pytest.raises(UserError, match=r"is not a run folder, it holds no recipe\.yaml"):
        read_run(tmp_path, "x")


def test_labels_tell_runs_apart_and_a_run_counts_once(copy_run: CopyRun, tmp_path: Path) -> None:
    first, second = copy_run("a/pair"), copy_run("b/pair")
    other = copy_run("other")
    runs = read_runs([first, second, other, tmp_path / "b" / ".." / "a" / "pair"])
    assert [run.label for run in runs] == ["a/pair", "b/pair", "other"]

"""One process at a time in a run folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock

from hacrl.errors import UserError
from hacrl.runs.lock import only_process


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    with FileLock(tmp_path / ".run.lock"), pytest.raises(UserError, match="in use"):  # noqa: SIM117
        with only_process(tmp_path, "run"):
            raise AssertionError("not reached")
    with only_process(tmp_path, "run"), only_process(tmp_path, "other"):
        pass


def test_nothing_is_left_behind_where_nothing_came_of_it(tmp_path: Path) -> None:
    with only_process(tmp_path / "runs", "run"):
        pass
    assert list(tmp_path.iterdir()) == []
    with only_process(tmp_path / "runs", "run"):
        (tmp_path / "runs" / "run").mkdir()
    assert (tmp_path / "runs" / "run").is_dir()


def test_a_folder_that_there_can_be_none_of_is_refused_in_two_lines(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for root, name in (
        (tmp_path, "x" * 300),
        (tmp_path / "file", "run"),
        (tmp_path / ("a" * 300), "r"),
    ):
        with pytest.raises(UserError, match="cannot be created") as caught:  # noqa: SIM117
            with only_process(root, name):
                raise AssertionError("not reached")
        assert len(str(caught.value).splitlines()) == 2

"""The crash test itself, briefly. `make crash-test` kills fifty times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.crash_test import __main__ as crash_test
from scripts.crash_test.comparing import differences


def test_killed_runs_end_as_if_nothing_had_happened(
    tmp_path: Path, forking: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    forking("scripts.crash_test.server")
    monkeypatch.setattr(crash_test, "STEPS", 3)
    found = crash_test.crash(tmp_path, kills=2, seed=1)
    assert found.wrong == []
    assert found.kills == 2
    assert found.identical == found.runs > 0
    run = tmp_path / "undisturbed" / "crash"
    assert len(list((run / "checkpoints").iterdir())) >= 2


def test_a_single_different_byte_is_a_difference(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "agents").mkdir(parents=True)
        (tmp_path / name / "agents" / "weights").write_bytes(b"12")
        (tmp_path / name / "metrics.jsonl").write_text(f'{{"x": 1, "seconds": {ord(name)}}}\n')
    assert differences(tmp_path / "a", tmp_path / "b") == []
    (tmp_path / "b" / "agents" / "weights").write_bytes(b"13")
    (tmp_path / "b" / "more").write_text("")
    assert differences(tmp_path / "a", tmp_path / "b") == ["agents/weights", "more"]

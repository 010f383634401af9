"""Which instruction sets are tried, and that a failure under one of them is one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts import instruction_sets


@pytest.mark.parametrize(
    ("native", "names"),
    [
        ("DEFAULT", ["DEFAULT"]),
        ("AVX2", ["DEFAULT", "AVX2"]),
        ("AVX512", ["DEFAULT", "AVX2", "AVX512"]),
        ("SVE256", ["DEFAULT"]),  # of a processor that has none of these
    ],
)
def test_no_wider_one_than_the_processors(native: str, names: list[str]) -> None:
    assert instruction_sets.choosable(native) == names


def test_files_are_found_by_their_mark() -> None:
    found = {Path(file).name for file in instruction_sets.marked()}
    assert {"test_objective.py", "test_logprobs.py", "test_training.py"} <= found
    assert "test_seeding.py" not in found


def test_the_tests_see_the_set_and_their_failure_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "import os; print('as', os.environ['ATEN_CPU_CAPABILITY']); raise SystemExit({})"
    for status in (0, 1):
        command = [sys.executable, "-c", code.format(status)]
        monkeypatch.setattr(instruction_sets, "TESTS", command)
        assert instruction_sets.run("DEFAULT") is (status == 0)
        assert "as default" in capsys.readouterr().out

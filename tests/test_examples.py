"""The examples run as they stand."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
EXAMPLE = EXAMPLES / "own_reward.py"


def test_a_reward_of_ones_own_without_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 60
    shorter = tmp_path / "own_reward.py"
    shorter.write_text(
        EXAMPLE.read_text().replace('"steps": 10', '"steps": 2').replace('step": 16', 'step": 4')
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # where a script lies, its modules are found
    runpy.run_path(str(shorter), run_name="__main__")
    shown = capfd.readouterr()
    lines = shown.out.splitlines()
    assert lines[0].startswith("0 {'ada': ")
    assert len(lines) == 3
    assert shown.err == ""
    assert (tmp_path / "own-reward.png").stat().st_size > 10_000
    assert (tmp_path / "runs" / "own-reward" / "agents" / "bob" / "model.safetensors").is_file()


def test_a_loop_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (EXAMPLES / "own_loop.py").read_text()
    assert len(code.splitlines()) <= 40
    (tmp_path / "own_loop.py").write_text(code.replace("range(10)", "range(2)"))
    monkeypatch.chdir(tmp_path)
    runpy.run_path("own_loop.py", run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ", 1)[0] for line in lines] == ["0", "1"]
    for agent in ("ada", "bob"):
        assert (tmp_path / "runs" / "own-loop" / agent / "model.safetensors").is_file()

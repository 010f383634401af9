"""The examples run as they stand."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
EXAMPLE = EXAMPLES / "own_reward.py"


def test_a_reward_of_ones_own_without_the_command_line(tmp_path: Path) -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 60
    shorter = tmp_path / "own_reward.py"
    shorter.write_text(
        EXAMPLE.read_text().replace('"steps": 10', '"steps": 2').replace('step": 16', 'step": 4')
    )
    result = subprocess.run(
        [sys.executable, shorter],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = result.stdout.splitlines()
    assert lines[0].startswith("0 {'ada': ")
    assert len(lines) == 3
    assert result.stderr == ""
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

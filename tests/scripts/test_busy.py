"""Cores are busy while the command runs, and never after."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest

from scripts import busy


def loops() -> list[psutil.Process]:
    found = psutil.Process().children()
    return [one for one in found if one.cmdline() == busy.loop()]


def test_as_many_loops_as_cores_which_end_with_the_block() -> None:
    def interrupted() -> None:
        with busy.every_core_busy():
            assert len(loops()) == os.cpu_count()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert loops() == []


@pytest.mark.parametrize(("status", "said"), [(0, "passed, with every core busy, in "), (3, "1.")])
def test_what_the_command_says_counts(
    status: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-c", f"raise SystemExit({status})"]
    monkeypatch.setattr(sys, "argv", ["busy", "--times", "2", *command])
    assert busy.main() == (1 if status else 0)
    assert said in capsys.readouterr().out


def test_a_loop_does_not_outlive_its_parent() -> None:
    code = (
        "import os, signal, subprocess\n"
        "from scripts.busy import loop\n"
        "print(subprocess.Popen(loop(), stdout=subprocess.DEVNULL).pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(killed.stdout)).wait()

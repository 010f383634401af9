"""Engines that fail, hang, die or lose their parent. None of it needs vLLM itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hacrl.agents.sampling.engines.base import EngineError
from hacrl.agents.sampling.engines.process import EngineProcess, WorkerError

ROOT = Path(__file__).resolve().parents[4]
WORKER = "tests.agents.sampling.engines.workers:NumberWorker"


def make(seconds: float = 30.0) -> EngineProcess:
    return EngineProcess(
        WORKER,
        seconds=seconds,
        longer="agents.kim.sampler.seconds",
        environment={"PYTHONPATH": str(ROOT)},
        deaths={signal.SIGKILL: "it was killed; use a smaller model"},
    )


@pytest.fixture
def process() -> Iterator[EngineProcess]:
    process = make()
    yield process
    process.close()


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def gone(process: EngineProcess) -> bool:
    return not alive(process.pid) and not process.folder.exists()


def test_what_goes_wrong_in_an_engine_is_said_and_ends_it(process: EngineProcess) -> None:
    with pytest.raises(WorkerError, match=r"^ValueError: no model$"):
        process.call("start", sleeps=False)
    assert gone(process)


def test_a_killed_engine_is_reported_with_the_likely_cause(process: EngineProcess) -> None:
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(EngineError, match=r"^it was killed; use a smaller model$"):
        process.call("sleep")
    assert gone(process)


def test_an_engine_that_ends_says_its_last_words(process: EngineProcess) -> None:
    log = process.folder / "engine.log"
    log.write_text("something\nout of luck\n")
    os.kill(process.pid, signal.SIGTERM)
    with pytest.raises(EngineError, match=r"ended with code -15; its last words: out of luck"):
        process.call("sleep")
    assert gone(process)


def test_an_engine_that_hangs_is_ended_at_the_limit() -> None:
    process = make(2.0)
    os.kill(process.pid, signal.SIGSTOP)
    begun = time.monotonic()
    with pytest.raises(EngineError, match=r"for 2 s .* raise agents\.kim\.sampler\.seconds$"):
        process.call("sleep")
    assert time.monotonic() - begun < 20, "of the 30 that another process has"
    assert gone(process)


def test_an_engine_ends_when_nobody_needs_it_any_more() -> None:
    process = make()
    pid, folder = process.pid, process.folder
    assert alive(pid)
    del process
    assert not alive(pid)
    assert not folder.exists()


@pytest.mark.parametrize("held", [False, True])
def test_an_engine_does_not_outlive_a_killed_parent(held: bool) -> None:
    """Not even if others hold the killed one's files, as a forked worker of it would."""
    program = (
        "import os, signal, time\n"
        "from hacrl.agents.sampling.engines.process import EngineProcess\n"
        f"worker, limits = {WORKER!r}, {{'seconds': 30.0, 'longer': ''}}\n"
        "client = EngineProcess(worker, **limits, environment={}, deaths={})\n"
        f"holder = os.fork() if {held} else None\n"
        "if holder == 0:\n"
        "    os.closerange(1, 3)\n"  # or this test waits for it
        "    time.sleep(600)\n"
        "    os._exit(0)\n"
        "print(client.pid, client.folder, holder or '', flush=True)\n"
        "time.sleep(3)\n"  # long enough for the engine's process to listen
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    parent = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True
    )
    assert parent.returncode == -signal.SIGKILL, parent.stderr
    pid, folder, *holders = parent.stdout.split()
    deadline = time.monotonic() + 60
    while (alive(int(pid)) or Path(folder).exists()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [alive(int(holder)) for holder in holders] == [True] * held
    for holder in holders:
        os.kill(int(holder), signal.SIGKILL)
    assert not alive(int(pid))
    assert not Path(folder).exists()

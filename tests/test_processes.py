"""Limits of processor time, and processes that end with the one that started them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from hacrl import processes
from hacrl.processes import TimeLimit, describe_exit, end_tree, processor_time


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    now = {"clock": 100.0, "used": 7.0}
    monkeypatch.setattr(processes.time, "monotonic", lambda: now["clock"])
    monkeypatch.setattr(processes, "processor_time", lambda pid: now["used"])
    return now


def ended_after(clock: dict[str, float], share: float, seconds: float) -> float:
    """Seconds by the clock until a process that gets this share of a processor has had its time."""
    limit = TimeLimit(1, seconds, before=clock["used"])
    begin = clock["clock"]
    while not limit.is_over():
        step = max(limit.wait, 0.01)
        clock["clock"] += step
        clock["used"] += share * step
    return clock["clock"] - begin


def test_processor_time_is_what_counts(clock: dict[str, float]) -> None:
    assert ended_after(clock, 1.0, 5.0) == pytest.approx(5.0, abs=0.6)
    assert ended_after(clock, 0.5, 5.0) == pytest.approx(10.0, abs=0.6)
    assert ended_after(clock, 0.2, 5.0) == pytest.approx(25.0, abs=0.6)


def test_who_only_waits_has_its_seconds_by_the_clock(clock: dict[str, float]) -> None:
    assert ended_after(clock, 0.0, 5.0) == pytest.approx(5.5, abs=0.1)


def test_nobody_is_waited_for_without_end(clock: dict[str, float]) -> None:
    assert ended_after(clock, 0.05, 5.0) == pytest.approx(50.0, abs=0.6)


def test_several_processors_may_be_used(clock: dict[str, float]) -> None:
    assert ended_after(clock, 8.0, 5.0) == pytest.approx(5.0, abs=0.1)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (0, "ended itself with exit code 0"),
        (-9, "was killed (SIGKILL), most likely for lack of memory"),
        (-15, "was ended by SIGTERM"),
        (-250, "was ended by signal 250"),
        (None, "closed its connection"),
    ],
)
def test_ways_to_end(code: int | None, text: str) -> None:
    assert describe_exit(code) == text


def test_descendants_are_counted_and_ended() -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass\ntime.sleep(600)"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    with subprocess.Popen([sys.executable, "-c", outer]) as process:
        while processor_time(process.pid) < 0.3:
            time.sleep(0.05)
        children = psutil.Process(process.pid).children(recursive=True)
        end_tree(process.pid)
        process.wait()
    assert children
    assert not psutil.wait_procs(children, timeout=60)[1]
    assert processor_time(process.pid) == 0.0


POOL = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from hacrl.processes import end_with_parent

def work(seconds):
    print(os.getpid(), flush=True)
    time.sleep(seconds)

if __name__ == "__main__":
    with ProcessPoolExecutor(2, get_context("spawn"), initializer=end_with_parent) as workers:
        list(workers.map(work, [600, 600]))
"""

# From its file, since the package that it lies in imports torch.
GUARDED = f"""
import subprocess, sys, time
from importlib.util import module_from_spec, spec_from_file_location

spec = spec_from_file_location("guard", {str(Path(processes.__file__).parent / "fleet/guard.py")!r})
module = module_from_spec(spec)
spec.loader.exec_module(module)

if __name__ == "__main__":
    children = [subprocess.Popen(["sleep", "600"], start_new_session=True) for _ in range(2)]
    guard = module.Guard()
    time.sleep(2)  # it looks once when it starts
    for child in children:
        print(child.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("text", [POOL, GUARDED], ids=["pool", "guard"])
def test_what_a_process_started_ends_with_it(tmp_path: Path, text: str, how: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(text)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as main:
        assert main.stdout is not None
        started = [psutil.Process(int(main.stdout.readline())) for _ in range(2)]
        os.kill(main.pid, how)
        # Whoever lives holds its end of our pipe, and nobody does.
        assert main.stdout.read() == ""
    for one in started:
        while is_alive(one):
            time.sleep(0.05)


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE  # nobody may be there to take note of it
    except psutil.NoSuchProcess:
        return False

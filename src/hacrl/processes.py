"""Processes that depend on each other: who has had its time, and who must not outlive whom."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import wait

import psutil

__all__ = ["AT_MOST", "TimeLimit", "describe_exit", "end_tree", "end_with_parent", "processor_time"]

_LOOK = 0.5
"""Seconds between two looks at a process that has not had its time yet."""
_IDLE = 0.02
"""Seconds of processor time; a process that gets less between two looks is waiting by itself."""
AT_MOST = 10
"""Times its limit that a process may take by the clock, however busy the machine is."""


class TimeLimit:
    """Whether a process, with all that it has started, has had its time. Begins at once.

    What counts is processor time, so that a busy machine takes nothing away. A process that merely
    waits (sleeps, is locked, listens) is given as many seconds by the clock, and none is given more
    than ten times as many. It is looked at only once those seconds have passed by the clock, so
    several processors may be used all that time.

    Args:
        pid: the process.
        seconds: the limit.
        before: seconds of processor time that it had used before the limit began.
    """

    def __init__(self, pid: int, seconds: float, before: float = 0.0) -> None:
        self._pid = pid
        self._seconds = seconds
        self._before = before
        self._begin = time.monotonic()
        self._look_at = self._begin + seconds
        self._last: float | None = None

    @property
    def wait(self) -> float:
        """Seconds until it is worth asking whether it is over."""
        return max(self._look_at - time.monotonic(), 0.0)

    def is_over(self) -> bool:
        """Whether the process is to be ended."""
        now = time.monotonic()
        if now < self._look_at:
            return False
        used = processor_time(self._pid) - self._before
        idle = self._last is not None and used - self._last < _IDLE
        if idle or used >= self._seconds or now - self._begin >= AT_MOST * self._seconds:
            return True
        self._last = used
        self._look_at = now + _LOOK
        return False


def processor_time(pid: int) -> float:
    """Seconds of processor time of a process and its descendants; 0 if it is gone."""
    total = 0.0
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for member in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                total += sum(member.cpu_times()[:4])  # its own and that of children that have ended
    return total


def end_tree(pid: int) -> None:
    """Kill a process and its descendants."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for member in (*process.children(recursive=True), process):
            with suppress(psutil.Error):
                member.kill()


def end_with_parent() -> None:
    """Let this process of `multiprocessing` end as soon as its parent does, however that ends.

    If it leads a process group, the group ends with it. Does nothing where there is no such parent.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    end = parent.sentinel  # of a pipe whose other end the parent alone holds
    threading.Thread(target=_end_after, args=(end,), daemon=True).start()
    if sys.platform == "linux":
        # A thread of ours does not run during a long call into C, but the system's signal arrives.
        leads = os.getpgrp() == os.getpid()
        signal.signal(signal.SIGIO, signal.SIG_DFL)
        fcntl.fcntl(end, fcntl.F_SETOWN, -os.getpid() if leads else os.getpid())
        fcntl.fcntl(end, fcntl.F_SETFL, fcntl.fcntl(end, fcntl.F_GETFL) | os.O_ASYNC)


def _end_after(sentinel: int) -> None:
    wait([sentinel])
    end_tree(os.getpid())


def describe_exit(code: int | None) -> str:
    """How a process ended, in words that follow "it".

    Args:
        code: as `multiprocessing` says it: minus n if signal n ended it.
    """
    if code is None:
        return "closed its connection"
    if code >= 0:
        return f"ended itself with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if -code == signal.SIGKILL:
        return f"was killed ({name}), most likely for lack of memory"
    return f"was ended by {name}"

"""The worker's side of the pool. Imports no torch, so that a worker stays small."""

from __future__ import annotations

import contextlib
import math
import resource
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from hacrl.records import Verdict
from hacrl.verify.base import Case, Verifier

__all__ = ["TaskCase", "judge", "start"]

_GRACE = 5
"""Seconds after the limit at which a worker ends itself, should its parent be gone."""

_SHARE = 0.02
"""Share of the limit after which a call takes no further case."""

_T = TypeVar("_T")

_verifiers: Mapping[str, Verifier]
_seconds: float


class TaskCase(NamedTuple):
    """A case and the task whose verifier made it."""

    task: str
    case: Case


def start(verifiers: Mapping[str, Verifier], seconds: float, memory: int) -> None:
    """Set up this process as a worker.

    Args:
        verifiers: judge the cases to come, by task.
        seconds: time that one call may take; the parent enforces it.
        memory: bytes of address space that judging may take, on top of what the process starts
            with (which includes whatever the script that trains imports).
    """
    global _verifiers, _seconds
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the main process, which ends us
    # Python's own handler would not run inside a long C call; the default action always ends us.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _verifiers, _seconds = verifiers, seconds
    for verifier in verifiers.values():
        verifier.prepare()
    with contextlib.suppress(ValueError, OSError):  # macOS has no such limit
        # The hard limit stays: the programs that a verifier starts have limits of their own.
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (_address_space() + memory, hard))


def _address_space() -> int:
    """Bytes that this process has mapped; 0 where the system does not tell."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[0]
    except OSError:
        return 0
    return int(pages) * resource.getpagesize()


def judge(cases: Sequence[TaskCase]) -> list[Verdict | str] | str:
    """Verdicts, in order; for a case that raised, the error message.

    Stops early if the cases are slow, so that a call exceeds its limit only if one case does. The
    result then lacks the last cases; it has at least one. Several cases of a verifier that takes
    batches are judged by one call; if that raised, the result is the error message.
    """
    # Without a handler the alarm ends the process, even in C code and when the parent is gone.
    signal.alarm(math.ceil(_seconds) + _GRACE)
    try:
        verifier = _verifiers[cases[0].task]
        if verifier.batch is not None and len(cases) > 1:
            return _attempt(lambda: list(verifier.judge_batch([case.case for case in cases])))
        return _one_by_one(cases)
    finally:
        signal.alarm(0)


def _one_by_one(cases: Sequence[TaskCase]) -> list[Verdict | str]:
    end = time.monotonic() + _seconds * _SHARE
    found: list[Verdict | str] = []
    for case in cases:
        verifier = _verifiers[case.task]
        found.append(_attempt(partial(verifier.judge, case.case)))
        if time.monotonic() > end:
            break
    return found


def _attempt(judgement: Callable[[], _T]) -> _T | str:
    try:
        return judgement()
    # A verifier may be a user's code. Whatever it raises, `sys.exit` included, concerns this case.
    except BaseException as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"[:500]

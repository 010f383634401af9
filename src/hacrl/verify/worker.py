"""The worker's side of `workers`. Imports no torch, so that a worker stays small."""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple, TypeVar

from hacrl.processes import end_with_parent
from hacrl.records import Verdict
from hacrl.verify.base import Case, Verifier

__all__ = ["Answer", "Call", "Found", "Setup", "TaskCase", "main"]

_SHARE = 0.02
"""Share of the limit after which a call takes no further case."""

_T = TypeVar("_T")

Found = list[Verdict | str] | str
"""Verdicts on cases, in order; for one that raised, the error message. Or one message for all."""


class TaskCase(NamedTuple):
    """A case and the task whose verifier made it."""

    task: str
    case: Case


class Setup(NamedTuple):
    """What makes a process a worker.

    Args:
        verifiers: judge the cases to come, by task.
        memory: bytes of address space that judging may take, on top of what the process starts
            with (which includes whatever the script that trains imports).
        folder: for temporary files.
    """

    verifiers: Mapping[str, Verifier]
    memory: int
    folder: str


class Call(NamedTuple):
    """Cases of one task to judge, and the limit in seconds that the parent enforces."""

    cases: Sequence[TaskCase]
    seconds: float


class Answer(NamedTuple):
    """What a worker sends: once when it has started, then for each call.

    Args:
        found: the result; as an answer to the start, empty or why it failed.
        used: seconds of processor time that the worker has taken in all.
    """

    found: Found
    used: float


def main(connection: Connection, setup: bytes) -> None:
    """Judge until the parent is gone.

    Args:
        connection: to the parent.
        setup: a pickled `Setup`.
    """
    with contextlib.suppress(PermissionError):  # it leads a session already
        os.setpgid(0, 0)  # what it starts ends with it; and Ctrl-C is for the main process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Python's own handler would not run inside a long C call; the default action always ends us.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent()
    verifiers = _attempt(lambda: _prepared(setup))
    _send(connection, verifiers if isinstance(verifiers, str) else [])
    with contextlib.suppress(EOFError, ConnectionError):
        while not isinstance(verifiers, str):
            _send(connection, _judge(verifiers, connection.recv()))


def _prepared(setup: bytes) -> Mapping[str, Verifier]:
    verifiers, memory, folder = pickle.loads(setup)
    tempfile.tempdir = folder
    for verifier in verifiers.values():
        verifier.prepare()
    with contextlib.suppress(ValueError, OSError):  # macOS has no such limit
        # The hard limit stays: the programs that a verifier starts have their own limits.
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (_address_space() + memory, hard))
    return dict(verifiers)


def _address_space() -> int:
    """Bytes that this process has mapped; 0 where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[0]
    except OSError:
        return 0
    return int(pages) * resource.getpagesize()


def _send(connection: Connection, results: Found) -> None:
    used = sum(os.times()[:4])
    # A verdict may be a user's, with anything in it that does not pickle.
    message = _attempt(lambda: pickle.dumps(Answer(results, used)))
    if isinstance(message, str):
        message = pickle.dumps(Answer(message, used))
    connection.send_bytes(message)


def _judge(verifiers: Mapping[str, Verifier], call: Call) -> Found:
    """Stops early if the cases are slow, so that a call exceeds its limit only if one case does.

    The result then lacks the last cases; it has at least one. Several cases of a verifier that
    takes batches are judged by one call of it.
    """
    verifier = verifiers[call.cases[0].task]
    cases = [case.case for case in call.cases]
    if verifier.batch is not None and len(cases) > 1:
        return _attempt(lambda: list(verifier.judge_batch(cases)))
    end = time.monotonic() + call.seconds * _SHARE
    results: list[Verdict | str] = []
    for case in cases:
        results.append(_attempt(partial(verifier.judge, case)))
        if time.monotonic() > end:
            break
    return results


def _attempt(judgement: Callable[[], _T]) -> _T | str:
    try:
        return judgement()
    # A verifier may be a user's code. Whatever it raises, `sys.exit` included, concerns this case.
    except BaseException as error:  # noqa: BLE001
        return _message(error)


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r}) instead of returning a result"[:500]
    if isinstance(error, MemoryError):
        return f"MemoryError: {str(error) or 'it needs more than verification.memory allows'}"[:500]
    return f"{type(error).__name__}: {error}"[:500]

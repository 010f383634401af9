"""Programs in separate processes, under limits. What this is and is not: docs/rewards.md."""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hacrl.processes import AT_MOST, TimeLimit, end_tree

__all__ = ["Ended", "Limits", "base_environment", "run_confined"]

_FILE = 64 << 20
"""Bytes that the program may write to any one file, its output included."""
_PROCESSES = 64
_OUTPUT = 1 << 16
"""Bytes at the end of the output that are kept."""
_START_SECONDS = 60.0
"""Within which a program must begin. Its own limit counts from there, however slow its start is."""
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE")


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a program: seconds of processor time (see `TimeLimit`), bytes of address space."""

    seconds: float
    memory: int


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended.

    Args:
        code: exit code, 128 + n if signal n ended it; None if it ran past its time.
        begun: whether it came to its beginning.
        output, errors: ends of what it wrote.
    """

    code: int | None
    begun: bool
    output: str
    errors: str


def run_confined(
    argv: Sequence[str],
    text: str,
    limits: Limits,
    *,
    environment: Mapping[str, str],
    folder: str | None = None,
    announced: bool = False,
) -> Ended:
    """Run a program, and end whatever it started.

    Args:
        text: its standard input.
        environment: all environment variables that it sees.
        folder: where it runs; None for the current folder.
        announced: the program says itself when it has begun: it writes the seconds of processor
            time that it has used so far into the file whose number `HACRL_BEGUN` holds, and closes
            it. Otherwise it begins when it is executed.
    """
    rule = json.dumps(
        {
            "processor": math.ceil(limits.seconds * max(os.cpu_count() or 1, AT_MOST)),
            "memory": limits.memory,
            "file": _FILE,
            "processes": _PROCESSES,
            "announced": announced,
        }
    )
    launcher = str(Path(__file__).with_name("launch.py"))
    with (
        tempfile.TemporaryFile() as source,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        # Files, not pipes: a flood of output meets the limit of a file instead of our memory.
        source.write(text.encode("utf-8", "replace"))
        source.seek(0)
        beginning, theirs = os.pipe()
        with open(beginning, "rb", buffering=0) as begins:
            try:
                process = subprocess.Popen(
                    [sys.executable, "-I", "-S", launcher, rule, *argv],
                    stdin=source,
                    stdout=output,
                    stderr=errors,
                    cwd=folder,
                    env={**environment, "HACRL_BEGUN": str(theirs)},
                    pass_fds=[theirs],
                    start_new_session=True,
                )
            finally:
                os.close(theirs)
            try:
                used = _begin(begins)
                code = None if used is None else _wait(process, limits.seconds, used)
            finally:
                if process.poll() is None:
                    end_tree(process.pid)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if code is not None and code < 0:
            code = 128 - code
        return Ended(code, used is not None, _end_of(output), _end_of(errors))


def _begin(begins: IO[bytes]) -> float | None:
    """Wait for the beginning, or the end, of a program.

    Returns:
        Seconds of processor time until then; None if it did not begin.
    """
    ready, _, _ = select.select([begins], [], [], _START_SECONDS)
    return float(begins.read() or 0.0) if ready else None


def _wait(process: subprocess.Popen[bytes], seconds: float, used: float) -> int | None:
    """The exit code; None if it has had its time."""
    limit = TimeLimit(process.pid, seconds, used)
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(limit.wait)
        if limit.is_over():
            return None


def base_environment(folder: str, names: Sequence[str] = ()) -> dict[str, str]:
    """A few harmless variables, and those that are asked for; no tokens, no keys.

    Args:
        folder: for temporary files.
        names: further variables that are passed on if they are set.
    """
    kept = {name: os.environ[name] for name in (*_KEPT, *names) if name in os.environ}
    return kept | {"TMPDIR": folder}


def _end_of(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _OUTPUT, 0))
    return file.read().decode("utf-8", "replace")

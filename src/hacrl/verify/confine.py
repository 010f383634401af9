"""Programs in processes of their own, under limits. What this is and is not: docs/rewards.md."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

__all__ = ["Ended", "Limits", "base_environment", "run_confined"]

_FILE = 64 << 20
"""Bytes that the program may write to any one file, its output included."""
_PROCESSES = 64
_OUTPUT = 1 << 16
"""Bytes at the end of the output that are kept."""
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE")


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a program: seconds of running time, bytes of address space."""

    seconds: float
    memory: int


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended.

    Args:
        code: exit code, 128 + n if signal n ended it; None if it ran past its time.
        output, errors: ends of what it wrote.
    """

    code: int | None
    output: str
    errors: str


def run_confined(
    argv: Sequence[str],
    text: str,
    limits: Limits,
    *,
    environment: Mapping[str, str],
    folder: str | None = None,
) -> Ended:
    """Run a program, and end whatever it started.

    Args:
        text: its standard input.
        environment: all environment variables that it sees.
        folder: where it runs; None for the current folder.
    """
    rule = json.dumps(
        {
            "seconds": limits.seconds,
            "memory": limits.memory,
            "file": _FILE,
            "processes": _PROCESSES,
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
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", launcher, rule, *argv],
            stdin=source,
            stdout=output,
            stderr=errors,
            cwd=folder,
            env=dict(environment),
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(limits.seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if code is not None and code < 0:
            code = 128 - code
        return Ended(code, _end_of(output), _end_of(errors))


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

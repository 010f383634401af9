"""The process of an engine, as seen from the process that uses it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from hacrl.agents.sampling.engines.base import EngineError

__all__ = ["EngineProcess", "WorkerError"]


class WorkerError(EngineError):
    """The library behind the engine has raised an error, whose words these are."""


class EngineProcess:
    """Starts a worker, passes it work, and never waits for it without end.

    Nothing of it outlives this object or the process that it is in, however that ends.

    Args:
        worker: `MODULE:CLASS` of a `Worker`.
        seconds: longest silence.
        longer: what to raise if it only needs longer: the recipe's key for `seconds`.
        environment: variables for the process, besides those of this one.
        deaths: by the number of the signal that ended it, what that means and what to do.

    Attributes:
        folder: for files that both sides see; gone with the process.
    """

    def __init__(
        self,
        worker: str,
        *,
        seconds: float,
        longer: str,
        environment: Mapping[str, str],
        deaths: Mapping[int, str],
    ) -> None:
        self._seconds = seconds
        self._longer = longer
        self._deaths = deaths
        self.folder = Path(tempfile.mkdtemp(prefix="hacrl-engine-"))
        self._log = self.folder / "engine.log"
        ours, theirs = socket.socketpair()
        with theirs, self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "hacrl.agents.sampling.engines.host"),
                    *(worker, str(theirs.fileno()), str(self.folder)),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the run, which ends its phase first
                env={**os.environ, **environment},
            )
        self._connection = Connection(ours.detach())
        self._end = weakref.finalize(self, _end, self._process, self._connection, self.folder)

    @property
    def pid(self) -> int:
        """Of the process, which leads a process group of its own."""
        return self._process.pid

    def call(self, method: str, *arguments: object, **options: object) -> Any:
        """What a method of the worker returns.

        Raises:
            WorkerError: it raised an error.
            EngineError: it has died, or has been silent for too long, or was ended before. It is
                ended in any case.
        """
        if self._connection.closed:
            raise EngineError("it has been ended")
        try:
            self._connection.send((method, arguments, options))
            return self._answer()
        except (EOFError, OSError) as error:
            message = self._died()
            self.close()
            raise EngineError(message) from error
        except EngineError:
            self.close()
            raise

    def close(self) -> None:
        """End the process and those that it started, and remove the folder."""
        self._end()

    def _answer(self) -> Any:
        silent_since = time.monotonic()
        while (left := silent_since + self._seconds - time.monotonic()) > 0:
            if self._connection.poll(min(left, 1.0)):
                kind, value = self._connection.recv()
                if kind == "answer":
                    return value
                if kind == "failure":
                    raise WorkerError(value)
                silent_since = time.monotonic()
            elif self._process.poll() is not None:
                raise EOFError
        raise EngineError(
            f"it has not answered for {self._seconds:g} s and was ended; if it only needs longer, "
            f"raise {self._longer}"
        )

    def _died(self) -> str:
        try:
            code = self._process.wait(timeout=10.0)
        except subprocess.TimeoutExpired:
            return "it has closed its connection"
        if -code in self._deaths:
            return self._deaths[-code]
        lines = self._log.read_text("utf-8", errors="replace").strip().splitlines()
        last = f"; its last words: {lines[-1]}" if lines else ""
        return f"it has ended with code {code}{last}"


def _end(process: subprocess.Popen[bytes], connection: Connection, folder: Path) -> None:
    connection.close()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # with the engine's workers
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)

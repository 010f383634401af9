"""Worker processes, each with one call at a time, that can be killed and replaced.

Every worker has its own connection, so whatever one does, or does not do, is noticed at once
and does not affect the others.
"""

from __future__ import annotations

import atexit
import math
import multiprocessing
import os
import pickle
import shutil
import signal
import socket
import struct
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait

from hacrl.errors import UserError
from hacrl.processes import TimeLimit, describe_exit, end_tree
from hacrl.records import Outcome
from hacrl.verify import worker
from hacrl.verify.base import Verifier
from hacrl.verify.worker import Answer, Call, Found, Setup

__all__ = ["Workers"]

_STARTS = 3
"""Workers in a row that do not start before it is given up, where others have started before."""
_TRANSFER = 60
"""Seconds in which the other side must go on reading or writing a message."""

_END = 1.0
"""Seconds in which a process that has closed its connection may end by itself, and say how."""


class Workers:
    """Processes that judge. They start when they are first needed.

    Args:
        verifiers: what judges, by task.
        number: of processes.
        memory: bytes of address space that judging may take in each.
        start_seconds: longest time until a worker has imported what it needs.
    """

    def __init__(
        self,
        verifiers: Mapping[str, Verifier],
        number: int,
        memory: int,
        start_seconds: float = 600.0,
    ) -> None:
        self._verifiers = dict(verifiers)
        self._number = number
        self._memory = memory
        self._start_seconds = start_seconds
        self._workers: list[_Worker] = []
        self._have_started = False
        self._failed_starts = 0

    def run(self, calls: Sequence[Call]) -> list[Found | Outcome]:
        """What became of each call, in order: its result, TIMEOUT, or how the worker ended.

        Raises:
            UserError: workers do not start.
        """
        try:
            return self._run(calls)
        except BaseException:
            self.close()  # what is under way is abandoned
            raise

    def close(self) -> None:
        """End all workers at once. A later `run` starts new ones."""
        atexit.unregister(self.close)
        while self._workers:
            self._workers.pop().end()

    def _run(self, calls: Sequence[Call]) -> list[Found | Outcome]:
        left = deque(enumerate(calls))
        results: dict[int, Found | Outcome] = {}
        for process in list(self._workers):
            self._progress(process)  # some may have ended since the last time
        while len(results) < len(calls):
            self._fill(min(self._number, len(calls) - len(results)))
            for process in self._workers:
                if process.is_idle and left:
                    process.begin(*left.popleft())
            patience = min((process.patience for process in self._workers), default=0.0)
            wait([file for process in self._workers for file in process.files], patience)
            for process in list(self._workers):
                results |= self._progress(process)
        return [results[number] for number in range(len(calls))]

    def _fill(self, number: int) -> None:
        while len(self._workers) < number:
            # Registered after multiprocessing's own, and so called before it waits for them.
            atexit.unregister(self.close)
            atexit.register(self.close)
            try:
                process = _Worker(self._verifiers, self._memory, self._start_seconds)
            except OSError as error:
                raise UserError(f"the verifier's worker processes do not start: {error}") from error
            self._workers.append(process)

    def _progress(self, process: _Worker) -> dict[int, Found | Outcome]:
        """The result of a worker's call by its number, if there is one; replaces what has ended."""
        starting, number = process.is_starting, process.number
        state = process.look()
        if state is None:
            return {}
        process.number = None
        if starting and state == []:
            self._have_started, self._failed_starts = True, 0
            return {}
        if not process.is_idle:
            self._workers.remove(process)
            process.end()
        if starting:
            self._note_failure(state)
            return {}
        return {} if number is None else {number: state}

    def _note_failure(self, state: Found | Outcome) -> None:
        self._failed_starts += 1
        if self._have_started and self._failed_starts < _STARTS:
            return
        if state is Outcome.TIMEOUT:
            reason = f"they are not ready after {self._start_seconds:g} s"
        else:
            reason = str(state)
        raise UserError(
            f"the verifier's worker processes do not start: {reason}\n"
            'A script that trains needs its calls below `if __name__ == "__main__":`'
        )


class _Worker:
    """One process, as its parent sees it."""

    def __init__(self, verifiers: Mapping[str, Verifier], memory: int, seconds: float) -> None:
        if multiprocessing.current_process().daemon:
            raise UserError(
                "verifiers need worker processes, which a daemon process may not have\n"
                "start the process that trains or verifies with daemon=False"
            )
        self._folder = tempfile.mkdtemp(prefix="hacrl-")
        # Not fork: the main process has threads and may hold a GPU. The server that forks instead
        # has the libraries already, so that replacing a worker costs milliseconds, not seconds.
        context = multiprocessing.get_context("forkserver")
        libraries = frozenset[str]().union(*(verifier.libraries for verifier in verifiers.values()))
        context.set_forkserver_preload([worker.__name__, *sorted(libraries)])
        self._connection, theirs = context.Pipe()
        _limit_transfers(self._connection.fileno())
        setup = pickle.dumps(Setup(verifiers, memory, self._folder))
        self._process = context.Process(
            target=worker.main, args=(theirs, setup), name="hacrl-verifier"
        )
        with theirs:
            self._process.start()
        self.number: int | None = None
        self.is_starting = True
        self.is_idle = False
        self._used = 0.0
        self._deadline = time.monotonic() + seconds
        self._limit: TimeLimit | None = None

    @property
    def files(self) -> tuple[Connection, int]:
        """Ready when there is something to look at."""
        return self._connection, self._process.sentinel

    @property
    def patience(self) -> float:
        """Seconds after which there is something to look at, whatever the process does."""
        if self.is_idle:
            return math.inf
        if self._limit is not None:
            return self._limit.wait
        return max(self._deadline - time.monotonic(), 0.0)

    def begin(self, number: int, call: Call) -> None:
        """Hand over a call. If that fails, the process has ended, which `look` reports."""
        self.number, self.is_idle = number, False
        with suppress(OSError):
            self._connection.send(call)
        self._limit = TimeLimit(self._process.pid or 0, call.seconds, self._used)

    def look(self) -> Found | Outcome | None:
        """The result of the start or the call, or why there will be none; None while it works.

        It is idle afterwards if it can be used again.
        """
        try:
            message = self._connection.recv_bytes() if self._connection.poll() else None
        except (EOFError, OSError):
            return self._ending()
        if message is not None:
            answer = _unpickled(message)
            self._used, self._limit = answer.used, None
            self.is_idle = not (self.is_starting and answer.found)
            self.is_starting = False
            return answer.found
        if not self._process.is_alive():
            return self._ending()
        if self.is_idle:
            return None
        over = self._limit.is_over() if self._limit else time.monotonic() > self._deadline
        return Outcome.TIMEOUT if over else None

    def end(self) -> None:
        """Kill it and all that it has started."""
        pid = self._process.pid
        if pid is not None and self._process.is_alive():
            end_tree(pid)
        if pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)  # what a process that ended by itself has left
        self._process.kill()
        self._process.join()
        self._connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ending(self) -> str:
        self.is_idle = False
        deadline = time.monotonic() + _END
        # Not join, which waits without end for a process that has closed its files and lives on.
        while self._process.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        return f"its worker process {describe_exit(self._process.exitcode)}"


def _unpickled(message: bytes) -> Answer:
    try:
        answer: Answer = pickle.loads(message)
    # A verdict may be a user's, of a class that raises anything here.
    except Exception as error:  # noqa: BLE001
        return Answer(f"its result cannot be read: {type(error).__name__}: {error}"[:500], 0.0)
    return answer


def _limit_transfers(file: int) -> None:
    """Let reading and writing fail when the other side neither does its part nor ends."""
    seconds = struct.pack("ll", _TRANSFER, 0)
    with socket.socket(fileno=os.dup(file)) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, seconds)

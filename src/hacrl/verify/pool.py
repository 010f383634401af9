"""Verifiers under a hard limit of time and memory, in worker processes that can be killed.

A thread cannot be killed and a signal reaches neither other threads nor C code, so what may take
for ever runs in processes of its own. What a verifier's `screen` decides never goes there.
"""

from __future__ import annotations

import contextlib
import logging
import math
import multiprocessing
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Self

from pebble import ProcessExpired, ProcessPool

from hacrl.errors import UserError
from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify import worker
from hacrl.verify.base import Verifier
from hacrl.verify.worker import TaskCase

__all__ = ["VerifierPool"]

_logger = logging.getLogger("hacrl.verify")

_CHUNK = 16
"""Cases that go to a worker together, since each trip costs about as much as an easy case."""
_CHUNK_SECONDS = 2.0
"""Limit of a chunk, so that a stuck case is soon found. A chunk that exceeds it, or kills its
worker, is judged again case by case, each under the full limit."""
_STARTS = 3
"""Attempts to start workers, none of which judges anything, before giving up."""

_Found = list[Verdict | str] | Outcome | str
"""Of a chunk: verdicts and error messages of its first cases, or TIMEOUT or an error for all."""


class VerifierPool:
    """Judges responses in order, each under its own limit; a context manager.

    Workers start when a case first needs one and stay for later calls. `verify` may be called from
    any thread; calls take turns.

    Args:
        verifiers: what judges, by task.
        workers: number of processes.
        seconds: hard limit for judging one response. A response that exceeds it gets the outcome
            TIMEOUT and the reward of a wrong answer; its worker is killed and replaced.
        memory: limit of a worker's address space in bytes.
    """

    def __init__(
        self,
        verifiers: Mapping[str, Verifier],
        workers: int = 1,
        seconds: float = 10.0,
        memory: int = 2 << 30,
    ) -> None:
        self.verifiers = dict(verifiers)
        self.workers = workers
        self.seconds = seconds
        self.memory = memory
        self._pool: ProcessPool | None = None
        self._turn = threading.Lock()
        self._told = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers at once. A later `verify` starts new ones."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.stop()  # type: ignore[no-untyped-call]
            pool.join()

    def verify(self, pairs: Sequence[tuple[Prompt, str]]) -> list[Verdict]:
        """One verdict for each pair of prompt and response, in order.

        A verifier that raises, or whose process dies, gives SCORER_ERROR and no reward for that
        response alone; the first such error of this pool is logged.

        Raises:
            UserError: the workers do not start.
        """
        screened = [self._screen(prompt, response) for prompt, response in pairs]
        cases = dict.fromkeys(found for found in screened if not isinstance(found, Verdict))
        with self._turn:
            judged = self._judge(tuple(cases)) if cases else {}
        return [found if isinstance(found, Verdict) else judged[found] for found in screened]

    def _screen(self, prompt: Prompt, response: str) -> Verdict | TaskCase:
        try:
            found = self.verifiers[prompt.task].screen(prompt, response)
        # A verifier may be a user's code; an error in it concerns this response alone.
        except Exception as error:  # noqa: BLE001
            return self._failed(prompt.task, f"{type(error).__name__}: {error}")
        return found if isinstance(found, Verdict) else TaskCase(prompt.task, found)

    def _judge(self, cases: tuple[TaskCase, ...]) -> dict[TaskCase, Verdict]:
        judged: dict[TaskCase, Verdict] = {}
        alone: list[TaskCase] = []
        left = list(cases)
        while left:
            size = min(_CHUNK, math.ceil(len(left) / self.workers))
            chunks = [tuple(left[i : i + size]) for i in range(0, len(left), size)]
            left = []
            for chunk, found in self._run(chunks, min(self.seconds, _CHUNK_SECONDS)):
                if isinstance(found, list):
                    for case, one in zip(chunk, found, strict=False):
                        judged[case] = self._verdict(case.task, one)
                    left.extend(chunk[len(found) :])
                else:
                    alone.extend(chunk)
        for (case,), found in self._run([(case,) for case in alone], self.seconds):
            one = found[0] if isinstance(found, list) else found
            judged[case] = self._verdict(case.task, one)
        return judged

    def _run(
        self, chunks: Iterable[tuple[TaskCase, ...]], seconds: float
    ) -> list[tuple[tuple[TaskCase, ...], _Found]]:
        """What became of each chunk, in any order."""
        done: list[tuple[tuple[TaskCase, ...], _Found]] = []
        left = list(chunks)
        failures = 0
        while left and failures < _STARTS:
            futures = []
            # It may break while it is filled; the rest is then scheduled in the next round.
            with contextlib.suppress(RuntimeError):
                for chunk in left:
                    futures.append(
                        self._started().schedule(worker.judge, args=(chunk,), timeout=seconds)
                    )
            again = left[len(futures) :]
            for chunk, future in zip(left, futures, strict=False):
                try:
                    done.append((chunk, future.result()))
                except TimeoutError:
                    done.append((chunk, Outcome.TIMEOUT))
                except ProcessExpired as error:
                    done.append((chunk, f"the worker process ended with code {error.exitcode}"))
                except BrokenProcessPool:
                    again.append(chunk)
            if again:
                failures = failures + 1 if len(again) == len(left) else 0
                self.close()
            left = again
        if left:
            raise UserError(
                "the verifier's worker processes do not start; see the messages above\n"
                'A script that trains needs its calls below `if __name__ == "__main__":`'
            )
        return done

    def _started(self) -> ProcessPool:
        if self._pool is None:
            # Not fork: the main process has threads and may hold a GPU.
            self._pool = ProcessPool(
                max_workers=self.workers,
                initializer=worker.start,
                initargs=(self.verifiers, self.seconds, self.memory),
                context=multiprocessing.get_context("spawn"),
            )
        return self._pool

    def _verdict(self, task: str, found: Verdict | Outcome | str) -> Verdict:
        if isinstance(found, Verdict):
            return found
        if found is Outcome.TIMEOUT:
            return self.verifiers[task].verdict(Outcome.TIMEOUT)
        return self._failed(task, found)

    def _failed(self, task: str, message: str) -> Verdict:
        if not self._told:
            self._told = True
            _logger.warning(
                "the verifier of task %s failed: %s (later failures are counted but not shown)",
                task,
                message,
            )
        return self.verifiers[task].verdict(Outcome.SCORER_ERROR)

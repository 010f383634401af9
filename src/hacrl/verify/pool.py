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
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Self

from pebble import ProcessExpired, ProcessPool

from hacrl.config.text import short
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

_Chunk = tuple[TaskCase, ...]
"""Cases of one task."""
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
        memory: bytes of address space that judging may take in a worker.
        max_chars: a longer response is not read at all: NO_ANSWER.
        max_errors: share of scorer errors among the responses of a task, in one call of `verify`,
            beyond which that call fails.
    """

    def __init__(
        self,
        verifiers: Mapping[str, Verifier],
        workers: int = 1,
        seconds: float = 10.0,
        memory: int = 2 << 30,
        max_chars: int = 1_000_000,
        max_errors: float = 1.0,
    ) -> None:
        self.verifiers = dict(verifiers)
        self.workers = workers
        self.seconds = seconds
        self.memory = memory
        self.max_chars = max_chars
        self.max_errors = max_errors
        self.first_errors: dict[str, str] = {}
        """The first message of each task whose verifier has failed."""
        self._pool: ProcessPool | None = None
        self._turn = threading.Lock()

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
        response alone; the first such error of each task is logged and kept.

        Raises:
            UserError: the workers do not start, or the verifier of a task failed too often.
        """
        screened = [self._screen(prompt, response) for prompt, response in pairs]
        cases = dict.fromkeys(found for found in screened if not isinstance(found, Verdict))
        with self._turn:
            judged = self._judge(tuple(cases)) if cases else {}
        verdicts = [found if isinstance(found, Verdict) else judged[found] for found in screened]
        self._check_errors([prompt.task for prompt, _ in pairs], verdicts)
        return verdicts

    def _screen(self, prompt: Prompt, response: str) -> Verdict | TaskCase:
        verifier = self.verifiers[prompt.task]
        if len(response) > self.max_chars:
            return verifier.verdict(Outcome.NO_ANSWER)
        try:
            found = verifier.screen(prompt, response)
        # A verifier may be a user's code; an error in it concerns this response alone.
        except Exception as error:  # noqa: BLE001
            return self._failed(prompt.task, f"{type(error).__name__}: {error}")
        return found if isinstance(found, Verdict) else TaskCase(prompt.task, found)

    def _check_errors(self, tasks: Sequence[str], verdicts: Sequence[Verdict]) -> None:
        errors = Counter(
            task
            for task, verdict in zip(tasks, verdicts, strict=True)
            if verdict.outcome is Outcome.SCORER_ERROR
        )
        for task, count in errors.items():
            total = tasks.count(task)
            if count > self.max_errors * total:
                raise UserError(
                    f"tasks.{task}.verifier: failed on {count} of {total} responses, first with: "
                    f"{short(self.first_errors[task])}\nmend what it complains about, or raise "
                    f"verification.max_errors, which is {self.max_errors:g}"
                )

    def _judge(self, cases: tuple[TaskCase, ...]) -> dict[TaskCase, Verdict]:
        judged: dict[TaskCase, Verdict] = {}
        alone: list[_Chunk] = []
        left = list(cases)
        while left:
            chunks = self._chunks(left)
            left = []
            for chunk, found in self._run([(chunk, self._limit(chunk)) for chunk in chunks]):
                if isinstance(found, list):
                    for case, one in zip(chunk, found, strict=False):
                        judged[case] = self._verdict(case.task, one)
                    left.extend(chunk[len(found) :])
                elif len(chunk) == 1 and self._limit(chunk) == self.seconds:
                    judged[chunk[0]] = self._verdict(chunk[0].task, found)
                else:
                    alone.extend((case,) for case in chunk)
        for (case,), found in self._run([(chunk, self.seconds) for chunk in alone]):
            one = found[0] if isinstance(found, list) else found
            judged[case] = self._verdict(case.task, one)
        return judged

    def _chunks(self, cases: Sequence[TaskCase]) -> list[_Chunk]:
        by_task: dict[str, list[TaskCase]] = {}
        for case in cases:
            by_task.setdefault(case.task, []).append(case)
        chunks: list[_Chunk] = []
        for task, own in by_task.items():
            verifier = self.verifiers[task]
            most = verifier.batch or (1 if verifier.slow else _CHUNK)
            size = min(most, math.ceil(len(own) / self.workers))
            chunks.extend(tuple(own[i : i + size]) for i in range(0, len(own), size))
        return chunks

    def _limit(self, chunk: _Chunk) -> float:
        verifier = self.verifiers[chunk[0].task]
        return self.seconds if verifier.slow else min(self.seconds, _CHUNK_SECONDS)

    def _run(self, chunks: Iterable[tuple[_Chunk, float]]) -> list[tuple[_Chunk, _Found]]:
        """What became of each chunk under its limit in seconds, in any order."""
        done: list[tuple[_Chunk, _Found]] = []
        left = list(chunks)
        failures = 0
        while left and failures < _STARTS:
            futures = []
            # It may break while it is filled; the rest is then scheduled in the next round.
            with contextlib.suppress(RuntimeError):
                for chunk, seconds in left:
                    futures.append(
                        self._started().schedule(worker.judge, args=(chunk,), timeout=seconds)
                    )
            again = left[len(futures) :]
            for (chunk, seconds), future in zip(left, futures, strict=False):
                try:
                    done.append((chunk, future.result()))
                except TimeoutError:
                    done.append((chunk, Outcome.TIMEOUT))
                except ProcessExpired as error:
                    done.append((chunk, f"the worker process ended with code {error.exitcode}"))
                except BrokenProcessPool:
                    again.append((chunk, seconds))
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
            if multiprocessing.current_process().daemon:
                raise UserError(
                    "verifiers need worker processes, which a daemon process may not have\n"
                    "start the process that trains or verifies with daemon=False"
                )
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
        if task not in self.first_errors:
            self.first_errors[task] = message
            _logger.warning(
                "the verifier of task %s failed: %s (later failures are counted but not shown)",
                task,
                message,
            )
        return self.verifiers[task].verdict(Outcome.SCORER_ERROR)

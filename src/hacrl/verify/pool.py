"""Verifiers under a hard limit of time and memory, in worker processes that can be killed.

A thread cannot be killed and a signal reaches neither other threads nor C code, so what may take
for ever runs in separate processes. What a verifier's `screen` decides never goes there.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from hacrl.errors import UserError
from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify.base import Verifier
from hacrl.verify.worker import Call, TaskCase
from hacrl.verify.worker import Found as Answered
from hacrl.verify.workers import Workers

__all__ = ["VerifierPool"]

_logger = logging.getLogger("hacrl.verify")

_CHUNK = 16
"""Cases that go to a worker together, since each trip costs about as much as an easy case."""
_CHUNK_SECONDS = 2.0
"""Limit of a chunk, so that a stuck case is soon found. A chunk that exceeds it, or kills its
worker, is judged again case by case, each under the full limit."""

_Chunk = tuple[TaskCase, ...]
"""Cases of one task."""
_Found = Answered | Outcome
"""Of a chunk: verdicts and error messages of its first cases, or TIMEOUT or an error for all."""


class VerifierPool:
    """Judges responses in order, each under its own limit; a context manager.

    Workers start when a case first needs one and stay for later calls. `verify` may be called from
    any thread; calls take turns.

    Args:
        verifiers: what judges, by task.
        workers: number of processes.
        seconds: of processor time, the limit for judging one response; see `TimeLimit`. A
            response that exceeds it gets the outcome TIMEOUT and the reward of a wrong answer; its
            worker is killed and replaced.
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
        self._workers = Workers(self.verifiers, workers, memory)
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
        self._workers.close()

    def verify(self, pairs: Sequence[tuple[Prompt, str]]) -> list[Verdict]:
        """One verdict for each pair of prompt and response, in order.

        A verifier that raises, or whose process dies, gives SCORER_ERROR and no reward for that
        response alone; the first such error of each task is logged and kept.

        Raises:
            UserError: the workers do not start, or the verifier of a task failed too often.
        """
        screened = [self._screen(prompt, response) for prompt, response in pairs]
        cases = dict.fromkeys(case for case in screened if not isinstance(case, Verdict))
        with self._turn:
            judged = self._judge(tuple(cases)) if cases else {}
        verdicts = [case if isinstance(case, Verdict) else judged[case] for case in screened]
        self._check_errors([prompt.task for prompt, _ in pairs], verdicts)
        return verdicts

    def _screen(self, prompt: Prompt, response: str) -> Verdict | TaskCase:
        verifier = self.verifiers[prompt.task]
        if len(response) > self.max_chars:
            return verifier.verdict(Outcome.NO_ANSWER)
        try:
            screened = verifier.screen(prompt, response)
        # A verifier may be a user's code; an error in it concerns this response alone.
        except Exception as error:  # noqa: BLE001
            return self._failed(prompt.task, f"{type(error).__name__}: {error}")
        return screened if isinstance(screened, Verdict) else TaskCase(prompt.task, screened)

    def _check_errors(self, tasks: Sequence[str], verdicts: Sequence[Verdict]) -> None:
        errors = Counter(
            task
            for task, verdict in zip(tasks, verdicts, strict=True)
            if verdict.outcome is Outcome.SCORER_ERROR
        )
        for task, count in errors.items():
            total = tasks.count(task)
            if count > self.max_errors * total:
                # Here, because workers import this module and have no use for the recipe's schema.
                from hacrl.config.text import short

                raise UserError(
                    f"tasks.{task}.verifier: failed on {count} of {total} responses, first with: "
                    f"{short(self.first_errors[task])}\nfix that, or raise "
                    f"verification.max_errors, which is {self.max_errors:g}"
                )

    def _judge(self, cases: tuple[TaskCase, ...]) -> dict[TaskCase, Verdict]:
        judged: dict[TaskCase, Verdict] = {}
        alone: list[_Chunk] = []
        left = list(cases)
        while left:
            chunks = self._chunks(left)
            left = []
            for chunk, results in self._run(chunks):
                if isinstance(results, list):
                    for case, result in zip(chunk, results, strict=False):
                        judged[case] = self._verdict(case.task, result)
                    left.extend(chunk[len(results) :])
                elif len(chunk) == 1 and self._limit(chunk) >= self.seconds:
                    judged[chunk[0]] = self._verdict(chunk[0].task, results)
                else:
                    alone.extend((case,) for case in chunk)
        for (case,), results in self._run(alone, alone=True):
            result = results[0] if isinstance(results, list) else results
            judged[case] = self._verdict(case.task, result)
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

    def _limit(self, chunk: _Chunk, *, alone: bool = False) -> float:
        verifier = self.verifiers[chunk[0].task]
        whole = self.seconds + verifier.extra_seconds
        return whole if alone or verifier.slow else min(whole, _CHUNK_SECONDS)

    def _run(self, chunks: Sequence[_Chunk], *, alone: bool = False) -> list[tuple[_Chunk, _Found]]:
        """What became of each chunk under its limit; `alone` gives each the whole one."""
        calls = [Call(chunk, self._limit(chunk, alone=alone)) for chunk in chunks]
        return list(zip(chunks, self._workers.run(calls), strict=True))

    def _verdict(self, task: str, result: Verdict | Outcome | str) -> Verdict:
        if isinstance(result, Verdict):
            return result
        if result is Outcome.TIMEOUT:
            return self.verifiers[task].verdict(Outcome.TIMEOUT)
        return self._failed(task, result)

    def _failed(self, task: str, message: str) -> Verdict:
        if task not in self.first_errors:
            self.first_errors[task] = message
            _logger.warning(
                "the verifier of task %s failed: %s (later failures are counted but not shown)",
                task,
                message,
            )
        return self.verifiers[task].verdict(Outcome.SCORER_ERROR)

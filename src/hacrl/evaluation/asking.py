"""One loaded model, which answers what is missing."""

from __future__ import annotations

import gc
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import torch
from accelerate.utils.memory import (  # type: ignore[import-untyped]
    find_executable_batch_size,
)

from hacrl.agents.policy.loading import load_policy
from hacrl.agents.policy.templates import chat_template
from hacrl.agents.respondent import Respondent
from hacrl.errors import UserError
from hacrl.evaluation.answers import Answer, answers_of
from hacrl.evaluation.jobs import Job
from hacrl.evaluation.store import Stored
from hacrl.evaluation.targets import Target
from hacrl.phases import Interrupted
from hacrl.records import Decoding, Prompt
from hacrl.verify import VerifierPool
from hacrl.verify.rollouts import verify_rollouts

__all__ = ["Asking", "Watcher"]

_LARGEST = {"cpu": 32}
"""Sequences generated together to begin with, by kind of device. On a CPU more gain little, and
what is stored together should not take too long."""
_LARGEST_ELSEWHERE = 256

_Chunk = tuple[list[Prompt], int]
"""Problems that are put together, and the room in tokens for each response."""


class Watcher(Protocol):
    """Receives the progress of an evaluation; see `evaluation.watching` for what people see."""

    def note(self, text: str) -> None:
        """One line worth reading."""

    def progress(self, place: str, new: int, *, stored: bool = False) -> None:
        """So many more responses are done, or were stored; the place is agent and benchmark."""


class Asking:
    """A target, loaded.

    Args:
        target: the agent.
        verifiers: of all jobs.
        watcher: receives the progress.
        batch_size: see `runner.evaluate`.
        stop: asked between two chunks.

    Raises:
        UserError: the model cannot be loaded.
    """

    def __init__(
        self,
        target: Target,
        verifiers: VerifierPool,
        watcher: Watcher,
        batch_size: int | None,
        stop: Callable[[], bool],
    ) -> None:
        self._label = target.label
        self._verifiers = verifiers
        self._watcher = watcher
        self._stop = stop
        policy = load_policy(target.label, target.spec, clock=target.clock)
        if chat_template(policy.tokenizer) is None:
            watcher.note(f"{target.label} has no chat template; it gets the problems as plain text")
        self._respondent = Respondent(policy, Decoding(1, 1), seed=0)
        self._chunk = batch_size or _LARGEST.get(policy.device.type, _LARGEST_ELSEWHERE)
        self._batch_size = self._chunk  # as it was found, from one benchmark to the next

    def close(self) -> None:
        """Give the memory back."""
        del self._respondent
        gc.collect()
        if torch.accelerator.is_available():
            torch.accelerator.empty_cache()

    def ask(
        self, job: Job, store: Stored, done: Mapping[str, Sequence[Answer]]
    ) -> dict[str, list[Answer]]:
        """Answers to the problems that are not done, by problem, stored as they come.

        Raises:
            UserError: memory is too small, or the answers cannot be stored.
            Interrupted: between two chunks.
        """
        left = deque(self._chunks(job, [p for p in job.prompts if p.id not in done]))
        new: dict[str, list[Answer]] = {}
        if too_long := sum(len(chunk) for chunk, room in left if room < 1):
            self._watcher.note(
                f"{self._label} {job.name}: {too_long} problems leave no room for a response "
                f"within {self._respondent.positions} positions; they count as wrong"
            )

        def work(batch_size: int) -> None:
            while left:
                if self._stop():
                    raise Interrupted
                answers = self._answer(job, left[0], batch_size)
                left.popleft()
                store.add(answers)
                self._watcher.progress(f"{self._label} {job.name}", len(answers))
                for answer in answers:
                    new.setdefault(answer.problem, []).append(answer)

        def halve() -> int:
            self._batch_size //= 2
            return self._batch_size

        try:
            find_executable_batch_size(
                work, starting_batch_size=self._batch_size, reduce_batch_size_fn=halve
            )()
        except RuntimeError as error:
            if self._batch_size:
                raise
            raise UserError(
                f"{self._label} {job.name}: memory runs out with a single response of "
                f"{left[0][1]} tokens; lower --max-new-tokens, or load it with --dtype bfloat16"
            ) from error
        return new

    def _chunks(self, job: Job, prompts: Sequence[Prompt]) -> Iterator[_Chunk]:
        """What is put together, the longest first.

        Similar lengths save padding, and if memory runs out it does at once. Responses that the
        model's positions limit share a chunk only with those that have the same limit, so that the
        batch size has no influence on any answer.
        """
        lengths = self._respondent.prompt_lengths(prompts)
        order = sorted(range(len(prompts)), key=lambda i: (-lengths[i], i))
        positions, most = self._respondent.positions, job.settings.max_new_tokens

        def room(i: int) -> int:
            return most if positions is None else max(0, min(most, positions - lengths[i]))

        size = max(1, self._chunk // job.settings.samples)
        for limit, alike in itertools.groupby(order, key=room):
            part = [prompts[i] for i in alike]
            for start in range(0, len(part), size):
                yield part[start : start + size], limit

    def _answer(self, job: Job, chunk: _Chunk, batch_size: int) -> list[Answer]:
        prompts, room = chunk
        settings = job.settings
        if room < 1:
            return [Answer.unasked(p, i) for p in prompts for i in range(settings.samples)]
        rollouts = self._respondent.sample(
            prompts,
            settings.samples,
            occasion=f"evaluation {prompts[0].id}",
            decoding=Decoding(room, batch_size, settings.greedy, settings.temperature),
        )
        pool = verify_rollouts(
            0, prompts, settings.samples, {self._label: rollouts}, self._verifiers
        )
        return answers_of(pool, self._label)

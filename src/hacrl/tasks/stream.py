"""Which prompts a step gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hacrl.errors import UserError
from hacrl.records import Prompt

__all__ = ["PromptStream"]

_STREAM = 0x9E3779B9
"""Sets these draws apart from others that use the same seed."""


class PromptStream:
    """Deals prompts to steps in an endless, seeded order.

    Places are given to the tasks one after the other by the method of Sainte-Laguë: the next one
    goes to the task with the largest weight / (2 · places so far + 1). So the tasks alternate as
    evenly as their weights allow: of the first n places, a task of share w has n·w, give or take
    1/2 + w · tasks/2. With two tasks that is never off by more than 1.5, at any step.

    A task fills its places from its own seeded permutations. Every epoch of a task is a fresh one
    of all its prompts, and epochs follow each other without a gap. So every batch is full, no
    prompt is left out, and a batch can hold the same prompt twice where two epochs of a task meet,
    or where it has fewer prompts than places in a batch. Changing the weights, or adding a task at
    the end, leaves the order within the other tasks as it was.

    A batch depends on the step, the prompts, the batch size, the weights and the seed alone. There
    is no position to save: a resumed run asks for the step that it is at.

    Args:
        prompts: at least one of every task.
        per_step: P, prompts per step.
        seed: any integer ≥ 0.
        weights: positive, by task; None gives all tasks that occur the same.

    Raises:
        UserError: there are no prompts, or none of a task.
    """

    def __init__(
        self,
        prompts: Sequence[Prompt],
        per_step: int,
        seed: int,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        if not prompts:
            raise UserError(
                "no prompts are left to train on; check the tasks' sources and prompts.max_tokens"
            )
        if per_step < 1:
            raise ValueError("per_step must be at least 1")
        weights = weights or dict.fromkeys((prompt.task for prompt in prompts), 1.0)
        self._tasks = [tuple(p for p in prompts if p.task == name) for name in weights]
        for name, own in zip(weights, self._tasks, strict=True):
            if not own:
                raise UserError(
                    f"tasks.{name}: no prompts are left to train on; check its source and "
                    "prompts.max_tokens"
                )
        self._shares = np.array(list(weights.values())) / sum(weights.values())
        self._per_step = per_step
        self._seed = seed
        self._order = lru_cache(maxsize=2 * len(self._tasks))(self._permutation)

    def batch(self, step: int) -> tuple[Prompt, ...]:
        """The P prompts of a step, counted from 0."""
        batch = []
        for task, number in self._places(step * self._per_step):
            own = self._tasks[task]
            epoch, place = divmod(number, len(own))
            batch.append(own[self._order(task, epoch)[place]])
        return tuple(batch)

    def _places(self, first: int) -> list[tuple[int, int]]:
        """Task, and number within the task, of P places from `first`.

        Sainte-Laguë gives the m-th place of a task (from 0) the moment (m + 1/2) / share, and
        deals in the order of moments. By moment t a task has round(t · share) places, all of them
        together t give or take tasks/2; that is where to look without dealing all that came before.
        """
        slack = len(self._shares) / 2 + 2
        lowest = np.floor(np.maximum(first - slack, 0) * self._shares + 0.5).astype(np.int64)
        highest = np.floor((first + self._per_step + slack) * self._shares + 0.5).astype(np.int64)
        tasks = np.repeat(np.arange(len(lowest)), highest - lowest)
        numbers = np.concatenate([np.arange(*ends) for ends in zip(lowest, highest, strict=True)])
        moments = (numbers + 0.5) / self._shares[tasks]
        order = np.lexsort((tasks, moments))  # by moment, then by task
        start = first - int(lowest.sum())
        chosen = order[start : start + self._per_step]
        return list(zip(tasks[chosen].tolist(), numbers[chosen].tolist(), strict=True))

    def _permutation(self, task: int, epoch: int) -> NDArray[np.int64]:
        sequence = np.random.SeedSequence([_STREAM, self._seed, epoch, task])
        return np.random.default_rng(sequence).permutation(len(self._tasks[task]))

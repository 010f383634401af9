"""Which prompts a step gets."""

from __future__ import annotations

from collections.abc import Sequence
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

    Every epoch is a fresh permutation of all prompts, and epochs follow each other without a gap:
    the batch at the end of one is filled from the next. So every batch is full, no prompt is left
    out, and a batch can hold the same prompt twice where two epochs meet, or where there are fewer
    prompts than a batch holds.

    A batch depends on the step, the prompts, the batch size and the seed alone. There is no
    position to save: a resumed run asks for the step that it is at.

    Args:
        prompts: at least one.
        per_step: P, prompts per step.
        seed: any integer ≥ 0.

    Raises:
        UserError: there are no prompts.
    """

    def __init__(self, prompts: Sequence[Prompt], per_step: int, seed: int) -> None:
        if not prompts:
            raise UserError(
                "no prompts are left to train on; check the tasks' sources and prompts.max_tokens"
            )
        if per_step < 1:
            raise ValueError("per_step must be at least 1")
        self._prompts = tuple(prompts)
        self._per_step = per_step
        self._seed = seed
        self._order = lru_cache(maxsize=2)(self._permutation)

    def batch(self, step: int) -> tuple[Prompt, ...]:
        """The P prompts of a step, counted from 0."""
        first = step * self._per_step
        places = (divmod(i, len(self._prompts)) for i in range(first, first + self._per_step))
        return tuple(self._prompts[self._order(epoch)[place]] for epoch, place in places)

    def _permutation(self, epoch: int) -> NDArray[np.int64]:
        sequence = np.random.SeedSequence([_STREAM, self._seed, epoch])
        return np.random.default_rng(sequence).permutation(len(self._prompts))

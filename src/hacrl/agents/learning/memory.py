"""Work in micro-batches that become smaller when memory runs out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from accelerate.utils.memory import (  # type: ignore[import-untyped]
    clear_device_cache,
    should_reduce_batch_size,
)

from hacrl.errors import UserError

__all__ = ["within_memory"]

T = TypeVar("T")


def within_memory(
    agent: str, work: Callable[[int], T], lengths: Sequence[int], token_budget: int
) -> tuple[T, int]:
    """Do work on rows in micro-batches, all of it once more in smaller ones if memory runs out.

    What counts as running out is accelerate's to say.

    Args:
        agent: its name, for the message.
        work: is given the padded tokens that a micro-batch may have; must be able to start over.
        lengths: tokens of each row, prompt and response together.
        token_budget: to begin with.

    Returns:
        What the work returned, and the budget that it took.

    Raises:
        UserError: a single row is too much.
    """
    longest = max(lengths, default=0)
    while True:
        try:
            return work(token_budget), token_budget
        except RuntimeError as error:
            if not should_reduce_batch_size(error):
                raise
            if token_budget <= longest:
                raise UserError(
                    f"agent {agent}: memory is too small to learn from a single response of "
                    f"{longest} tokens, prompt included; lower sampling.max_new_tokens, or set "
                    "update.gradient_checkpointing: true"
                ) from error
        # Only here, where no traceback holds the tensors, is memory given back.
        clear_device_cache(garbage_collection=True)
        token_budget = max(longest, min(token_budget, len(lengths) * longest) // 2)

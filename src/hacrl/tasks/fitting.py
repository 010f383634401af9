"""Which prompts are short enough for every agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hacrl.config.schema import Task
from hacrl.errors import UserError
from hacrl.records import Prompt

__all__ = ["fitting"]


def fitting(
    task: Task, prompts: Sequence[Prompt], lengths: Mapping[str, Sequence[int]]
) -> tuple[list[Prompt], str | None]:
    """Leave out the prompts that are too long for any agent under its own template.

    Args:
        lengths: tokens of each prompt, by agent.

    Returns:
        The prompts that remain, and what was left out in a sentence, None if nothing was.

    Raises:
        UserError: some are too long and the task says to refuse, or none remain.
    """
    limit = task.max_prompt_tokens
    kept = [
        prompt
        for i, prompt in enumerate(prompts)
        if all(own[i] <= limit for own in lengths.values())
    ]
    if len(kept) == len(prompts):
        return kept, None
    counts = ", ".join(f"{name} {sum(n > limit for n in own)}" for name, own in lengths.items())
    message = f"prompts longer than task.max_prompt_tokens={limit}, by agent: {counts}"
    if not kept:
        raise UserError(f"{message}; none remain: raise the limit or shorten the prompts")
    if task.too_long == "refuse":
        raise UserError(f"{message}; raise the limit, shorten them, or set task.too_long: drop")
    return kept, f"{message}; {len(kept)} of {len(prompts)} prompts remain"

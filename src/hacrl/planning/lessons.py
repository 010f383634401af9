"""Lessons whose shapes are the largest, and the smallest, that a step can have."""

from __future__ import annotations

from collections.abc import Sequence

from hacrl.agents.learning.lessons import Lesson
from hacrl.agents.policy.policy import Policy
from hacrl.records import Rollout

__all__ = ["largest_lessons", "smallest_lessons"]


def largest_lessons(
    policy: Policy,
    *,
    prompt_tokens: int,
    new_tokens: int,
    prompts: int,
    group_size: int,
    token_budget: int,
) -> list[Lesson]:
    """What fills one micro-batch with responses of full length, after as many prompts as are
    computed together.

    Args:
        prompts: of one mini-batch.
        token_budget: padded tokens that are computed at once, by each rank.
    """
    longest = prompt_tokens + new_tokens
    rows = min(prompts * group_size, max(1, token_budget // longest) * policy.share.size)
    together = min(prompts, max(1, token_budget // prompt_tokens))
    lessons = [_lesson(policy, row % together, prompt_tokens, new_tokens) for row in range(rows)]
    # Prompts that are computed together stay in memory for each other's responses.
    shorter = range(rows, together) if policy.share.size == 1 else ()
    return lessons + [_lesson(policy, prompt, prompt_tokens, 1) for prompt in shorter]


def smallest_lessons(policy: Policy) -> list[Lesson]:
    """One response of one token for each rank."""
    return [_lesson(policy, 0, 1, 1)] * policy.share.size


def _lesson(policy: Policy, prompt: int, prompt_tokens: int, new_tokens: int) -> Lesson:
    rollout = Rollout(
        prompt=prompt,
        agent=policy.name,
        sample=0,
        policy_version=0,
        text="",
        logprob=-1.0,
        length=new_tokens,
        finished=True,
    )
    return Lesson(
        rollout,
        own=True,
        advantage=1.0,
        prompt_ids=_ids(prompt, policy.vocab_size, prompt_tokens),
        response_ids=(0,) * new_tokens,
        left_out=None,
        sampled=(-1.0,) * new_tokens,
    )


def _ids(number: int, vocab_size: int, count: int) -> Sequence[int]:
    """Ids that differ from those of another number, as long as they can."""
    digits = []
    for _ in range(count):
        number, digit = divmod(number, vocab_size)
        digits.append(digit)
    return digits

"""Which prompts are short enough for every agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hacrl.config.rollouts import Prompts
from hacrl.errors import UserError
from hacrl.records import Prompt

__all__ = ["fitting", "prompt_limit", "short_enough"]


def prompt_limit(rule: Prompts, max_new_tokens: int, positions: int | None) -> int:
    """Longest prompt in tokens that an agent can take: the response must find room as well.

    Args:
        positions: tokens that the agent's model can address, None if unlimited.
    """
    room = rule.max_tokens if positions is None else positions - max_new_tokens
    return min(rule.max_tokens, room)


def short_enough(
    prompts: Sequence[Prompt], lengths: Mapping[str, Sequence[int]], limits: Mapping[str, int]
) -> list[Prompt]:
    """The prompts that every agent can take. The arguments are those of `fitting`."""
    return [
        prompt
        for i, prompt in enumerate(prompts)
        if all(own[i] <= limits[name] for name, own in lengths.items())
    ]


def fitting(
    rule: Prompts,
    prompts: Sequence[Prompt],
    lengths: Mapping[str, Sequence[int]],
    limits: Mapping[str, int],
) -> tuple[list[Prompt], str | None]:
    """Leave out the prompts that are too long for any agent under its own template.

    Args:
        lengths: tokens of each prompt, by agent.
        limits: of `prompt_limit`, by agent.

    Returns:
        The prompts that remain, and what was left out in a sentence, None if nothing was.

    Raises:
        UserError: some are too long and the rule is to refuse, or none remain of a task.
    """
    kept = short_enough(prompts, lengths, limits)
    if len(kept) == len(prompts):
        return kept, None
    counts = ", ".join(
        f"{name} {sum(n > limits[name] for n in own)} (limit {limits[name]})"
        for name, own in lengths.items()
    )
    message = f"prompts too long, by agent: {counts}"
    remedy = "raise prompts.max_tokens, lower sampling.max_new_tokens, or shorten the prompts"
    cramped = [name for name, limit in limits.items() if limit < rule.max_tokens]
    if cramped and min(limits.values()) < 1:
        worst = min(cramped, key=lambda name: limits[name])
        raise UserError(
            f"sampling.max_new_tokens: leaves no room for a prompt in the positions of agent "
            f"{worst}'s model, so none remain; lower it by {1 - limits[worst]} or more"
        )
    if len(cramped) == len(limits):  # then prompts.max_tokens limits no agent
        remedy = "lower sampling.max_new_tokens, or shorten the prompts"
    if not kept:
        raise UserError(f"{message}; none remain: {remedy}")
    emptied = dict.fromkeys(p.task for p in prompts).keys() - {p.task for p in kept}
    if emptied:
        raise UserError(f"{message}; none remain of tasks.{min(emptied)}: {remedy}")
    if rule.too_long == "refuse":
        raise UserError(f"{message}; {remedy}, or set prompts.too_long: drop")
    return kept, f"{message}; {len(kept)} of {len(prompts)} prompts remain"

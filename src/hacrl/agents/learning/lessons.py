"""The pool of a step as one learner sees it: every response with its advantage, in its own ids."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hacrl.agents.policy.encoding import encode_foreign
from hacrl.agents.policy.openings import without_opening
from hacrl.agents.policy.policy import Policy
from hacrl.records import Pool, Rollout, Verified

__all__ = ["Lesson", "make_lessons"]


_Encoded = tuple[Sequence[int], str | None]
"""Ids for the learner, and why it cannot use them, if so."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """One response that a learner may learn from.

    Args:
        rollout: where it comes from.
        own: whether the learner sampled it itself.
        advantage: A, or Ã for a peer's response (the discrepancy coefficient included).
        prompt_ids: the prompt in the learner's tokens.
        response_ids: the response in the learner's tokens: the sampled ids if it is its own.
        left_out: why the learner cannot use it, None if it can.
        recomputed: log-probabilities of an own response's tokens, computed by the learner itself
            before its first update; None where those of the sampler are used.
    """

    rollout: Rollout
    own: bool
    advantage: float
    prompt_ids: Sequence[int]
    response_ids: Sequence[int]
    left_out: str | None
    recomputed: tuple[float, ...] | None = None

    @property
    def old_logprobs(self) -> tuple[float, ...]:
        """log π_j_old(y_t) of the author's tokens."""
        return self.rollout.token_logprobs if self.recomputed is None else self.recomputed

    @property
    def length(self) -> int:
        """Tokens of prompt and response together."""
        return len(self.prompt_ids) + len(self.response_ids)


def make_lessons(
    policy: Policy,
    pool: Pool,
    advantage: Mapping[str, Sequence[Sequence[float]]],
    prompt_ids: Sequence[Sequence[int]],
    openings: Sequence[str] | None = None,
) -> list[Lesson]:
    """Lessons from the learner's own responses first, then from its sources'.

    Args:
        advantage: for every agent that is learned from, the learner itself included, values as
            [prompts][samples]; NaN where the algorithm does not use a response.
        prompt_ids: the batch's prompts in the learner's tokens.
        openings: what each of them opens at its end, see `openings.find_opening`; None: nothing.
    """
    lessons = []
    openings = openings or [""] * len(prompt_ids)
    limit = policy.max_tokens
    sources = [agent for agent in advantage if agent != policy.name]
    for agent in (policy.name, *sources):
        rows = pool.of(agent)
        values = [advantage[agent][row.rollout.prompt][row.rollout.sample] for row in rows]
        reasons = [_unusable(row, value) for row, value in zip(rows, values, strict=True)]
        encoded: list[_Encoded]
        if agent == policy.name:
            encoded = [(row.rollout.token_ids, why) for row, why in zip(rows, reasons, strict=True)]
        else:
            encoded = _foreign(policy, rows, reasons, openings)
        for row, value, (ids, left_out) in zip(rows, values, encoded, strict=True):
            rollout = row.rollout
            prompt = prompt_ids[rollout.prompt]
            if left_out is None and limit and len(prompt) + len(ids) > limit:
                left_out = "too_long"
            value = 0.0 if math.isnan(value) else value
            lessons.append(Lesson(rollout, agent == policy.name, value, prompt, ids, left_out))
    return lessons


def _unusable(row: Verified, advantage: float) -> str | None:
    if row.verdict.reward is None:
        return "unscored"
    return "not_used" if math.isnan(advantage) else None


def _foreign(
    policy: Policy,
    rows: Sequence[Verified],
    reasons: Sequence[str | None],
    openings: Sequence[str],
) -> list[_Encoded]:
    """Peers' responses in the learner's tokens, but for those that are unusable for a reason."""
    results: list[_Encoded] = []
    texts: dict[int, str] = {}
    for i, (row, reason) in enumerate(zip(rows, reasons, strict=True)):
        rollout = row.rollout
        left_out = reason or rollout.unshareable
        if left_out is None:
            text = without_opening(rollout.text, openings[rollout.prompt])
            if text is None:
                left_out = "no_opening"
            else:
                texts[i] = text
        results.append(((), left_out))
    encoded = encode_foreign(policy, [*texts.values()], [rows[i].rollout.finished for i in texts])
    for i, one in zip(texts, encoded, strict=True):
        results[i] = one
    return results

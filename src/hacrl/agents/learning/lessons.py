"""The pool of a step as one learner sees it: every response with its advantage, in its own ids."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hacrl.agents.policy.encoding import encode_foreign
from hacrl.agents.policy.openings import without_opening
from hacrl.agents.policy.policy import Policy
from hacrl.agents.sampling.base import Sample
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
        sampled: log-probabilities of an own response's tokens, by the sampler; none of a peer's.
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
    sampled: Sequence[float] = ()
    recomputed: tuple[float, ...] | None = None

    @property
    def old_logprobs(self) -> Sequence[float]:
        """log π_old(y_t) of an own response's tokens."""
        return self.sampled if self.recomputed is None else self.recomputed

    @property
    def old_logprob(self) -> float:
        """log π_j_old(y), summed over the author's tokens."""
        return self.rollout.logprob if self.recomputed is None else math.fsum(self.recomputed)

    @property
    def length(self) -> int:
        """Tokens of prompt and response together."""
        return len(self.prompt_ids) + len(self.response_ids)


def make_lessons(
    policy: Policy,
    pool: Pool,
    advantage: Mapping[str, Sequence[Sequence[float]]],
    prompt_ids: Sequence[Sequence[int]],
    drawn: Mapping[tuple[int, int], Sample],
    openings: Sequence[str] | None = None,
) -> list[Lesson]:
    """Lessons from the learner's own responses first, then from its sources'.

    Args:
        advantage: for every agent that is learned from, the learner itself included, values as
            [prompts][samples]; NaN where the algorithm does not use a response.
        prompt_ids: the batch's prompts in the learner's tokens.
        drawn: what the learner drew, by prompt and sample.
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
        own = agent == policy.name
        samples = [_drawn(row.rollout, drawn) if own else None for row in rows]
        encoded = (
            [
                (drawn_sample.token_ids, why)
                for drawn_sample, why in zip(samples, reasons, strict=True)
                if drawn_sample
            ]
            if own
            else _foreign(policy, rows, reasons, openings)
        )
        for row, value, sample, (ids, left_out) in zip(rows, values, samples, encoded, strict=True):
            rollout = row.rollout
            prompt = prompt_ids[rollout.prompt]
            if left_out is None and limit and len(prompt) + len(ids) > limit:
                left_out = "too_long"
            value = 0.0 if math.isnan(value) else value
            sampled = sample.logprobs if sample else ()
            lessons.append(Lesson(rollout, own, value, prompt, ids, left_out, sampled))
    return lessons


def _drawn(rollout: Rollout, drawn: Mapping[tuple[int, int], Sample]) -> Sample:
    sample = drawn.get((rollout.prompt, rollout.sample))
    if sample is None or len(sample.token_ids) != rollout.length:
        raise ValueError(
            f"agent {rollout.agent} learns from what it drew last, and sample {rollout.sample} of "
            f"prompt {rollout.prompt} is not of that"
        )
    return sample


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
    for i, encoding in zip(texts, encoded, strict=True):
        results[i] = encoding
    return results

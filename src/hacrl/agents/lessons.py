"""The pool of a step as one learner sees it: every response with its advantage, in its own ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hacrl.agents.encoding import encode_foreign
from hacrl.agents.policy import Policy
from hacrl.records import Pool, Rollout

__all__ = ["Lesson", "make_lessons"]


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
    sources: Sequence[str],
    advantage: Mapping[str, Sequence[Sequence[float]]],
    prompt_ids: Sequence[Sequence[int]],
) -> list[Lesson]:
    """Lessons from the learner's own responses first, then from its sources'.

    Args:
        advantage: for every agent that is learned from, values as [prompts][samples].
        prompt_ids: the batch's prompts in the learner's tokens.
    """
    lessons = []
    for agent in (policy.name, *sources):
        for row in pool.of(agent):
            rollout, own = row.rollout, agent == policy.name
            ids: Sequence[int] = rollout.token_ids
            left_out = None
            if row.verdict.reward is None:
                left_out = "unscored"
            elif not own:
                ids, left_out = _foreign(policy, rollout)
            prompt = prompt_ids[rollout.prompt]
            if (
                left_out is None
                and policy.max_tokens
                and len(prompt) + len(ids) > policy.max_tokens
            ):
                left_out = "too_long"
            value = advantage[agent][rollout.prompt][rollout.sample]
            lessons.append(Lesson(rollout, own, value, prompt, ids, left_out))
    return lessons


def _foreign(policy: Policy, rollout: Rollout) -> tuple[list[int], str | None]:
    if rollout.unshareable is not None:
        return [], rollout.unshareable
    return encode_foreign(policy, rollout.text, rollout.finished)

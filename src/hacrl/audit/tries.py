"""Responses that the audit generates, each known to be right or wrong for its reference answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hacrl.records import Prompt, Verdict

__all__ = ["Audited", "Expected", "Tried", "Try", "Unjudged"]


class Expected(StrEnum):
    """How a person would judge a response."""

    RIGHT = "right"
    WRONG = "wrong"
    """Wrong, or no answer at all: it must not be rewarded."""
    STRICT = "strict"
    """A person might accept it, but the verifier's rule is strict here on purpose."""


@dataclass(frozen=True, slots=True)
class Try:
    """A response that was made from a reference answer.

    Args:
        kind: how, in a few words; findings are counted by it.
        response: what an agent might write.
    """

    kind: str
    response: str
    expected: Expected


@dataclass(frozen=True, slots=True)
class Audited:
    """A response with the verdict on it."""

    prompt: Prompt
    response: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Tried:
    """A generated response with the verdict on it."""

    prompt: Prompt
    attempt: Try
    verdict: Verdict

    @property
    def false_negative(self) -> bool:
        """Whether it is right and was not rewarded."""
        return self.attempt.expected is Expected.RIGHT and self.verdict.outcome != "right"

    @property
    def false_positive(self) -> bool:
        """Whether it is wrong and was rewarded."""
        return self.attempt.expected is Expected.WRONG and self.verdict.outcome == "right"


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A reference answer that no response can be judged by, and why."""

    prompt: Prompt
    reason: str

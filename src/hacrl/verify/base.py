"""What a verifier is."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import ClassVar

from hacrl.records import Outcome, Prompt, Verdict

__all__ = ["Case", "Verifier"]

Case = Hashable
"""What a judgement depends on, and nothing else. It must pickle. Equal cases are judged once."""


class Verifier(ABC):
    """Judges responses in two stages, so that only what is dangerous leaves the main process.

    `screen` is safe to run anywhere: its time and memory are bounded by the length of the
    response. What it cannot decide it hands on as a case, which `judge` decides under the limits
    of a `VerifierPool`. Verifiers pickle.

    Args:
        correct: reward of a right answer.
        wrong: reward of a wrong answer, of none, and of one that exceeds the time limit.
    """

    correct: float
    wrong: float

    slow: ClassVar[bool] = False
    """Whether a judgement takes so long that each goes to a worker by itself."""

    @property
    def extra_seconds(self) -> float:
        """Time that a judgement may take on top of a pool's limit, for what is not the response's
        own doing."""
        return 0.0

    @property
    def batch(self) -> int | None:
        """Cases that `judge_batch` takes at most; None if there is only `judge`."""
        return None

    @abstractmethod
    def screen(self, prompt: Prompt, response: str) -> Verdict | Case:
        """The verdict, if it takes no more than reading; else the case to judge."""

    def judge(self, case: Case) -> Verdict:
        """The verdict on a case. May take any time; anything that it raises is a scorer error.

        A verifier whose `screen` decides everything need not have it.
        """
        raise RuntimeError(f"{type(self).__name__} decides everything in screen, yet left {case!r}")

    def judge_batch(self, cases: Sequence[Case]) -> list[Verdict]:
        """Verdicts on several cases, in order. If it fails, each case is judged alone."""
        return [self.judge(case) for case in cases]

    @property
    def libraries(self) -> frozenset[str]:
        """Modules that take long to import and that `prepare` would import."""
        return frozenset()

    def prepare(self) -> None:  # noqa: B027 - most verifiers have nothing to load
        """Load what `judge` needs. Called once in every worker, outside the time limit."""

    def wrong_responses(self, prompt: Prompt) -> dict[str, str]:
        """Responses that this verifier must not call right for a prompt, by what is wrong with
        them. Empty if it knows none; for an audit of the prompt's reference answer."""
        return {}

    def why_not_verifiable(self, prompt: Prompt) -> str | None:
        """Why the reference answer of a prompt is not verifiable, if known."""
        return None

    def verdict(self, outcome: Outcome, answer: str | None = None) -> Verdict:
        """A verdict with the reward that this verifier gives for an outcome."""
        match outcome:
            case Outcome.RIGHT:
                reward: float | None = self.correct
            case Outcome.WRONG | Outcome.NO_ANSWER | Outcome.TIMEOUT:
                reward = self.wrong
            case _:
                reward = None
        return Verdict(reward, outcome, answer)

    def __call__(self, prompt: Prompt, response: str) -> Verdict:
        """Both stages in this process, without any limit: for known answers only."""
        screened = self.screen(prompt, response)
        return screened if isinstance(screened, Verdict) else self.judge(screened)

    def scored(
        self,
        score: float,
        *,
        threshold: float,
        lowest: float,
        answer: str | None = None,
    ) -> Verdict:
        """A verdict whose reward is the score itself, right from the threshold on.

        Raises:
            ValueError: the score is not finite, or less than the lowest that was announced.
        """
        if not math.isfinite(score) or score < lowest:
            raise ValueError(f"score {score:g} is not a number ≥ {lowest:g}, the lowest announced")
        return Verdict(score, Outcome.RIGHT if score >= threshold else Outcome.WRONG, answer)

"""Several answers, each of which is right by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify.base import Case, Verifier

__all__ = ["AnyOf"]

_WORST_FIRST = (
    Outcome.SCORER_ERROR,
    Outcome.NOT_VERIFIABLE,
    Outcome.TIMEOUT,
    Outcome.NO_ANSWER,
    Outcome.WRONG,
    Outcome.RIGHT,
)


@dataclass(frozen=True)
class AnyOf(Verifier):
    """Puts the reference answer of a prompt and each of its alternatives to a verifier, and keeps
    the best.

    All of them share the limit of time that one response has, and are judged one by one also where
    the verifier takes batches.

    Args:
        verifier: judges by the reference answer of the prompt that it gets.
    """

    verifier: Verifier

    @property
    def correct(self) -> float:  # type: ignore[override]
        """That of the verifier."""
        return self.verifier.correct

    @property
    def wrong(self) -> float:  # type: ignore[override]
        """That of the verifier."""
        return self.verifier.wrong

    @property
    def slow(self) -> bool:  # type: ignore[override]
        """Whether the verifier is."""
        return self.verifier.slow

    def screen(self, prompt: Prompt, response: str) -> Verdict | Case:
        """Decides what is right by one answer, or what the verifier decides for all of them."""
        screened: list[Verdict | Case] = []
        for gold in (prompt.gold, *prompt.alternatives):
            result = self.verifier.screen(replace(prompt, gold=gold, alternatives=()), response)
            if isinstance(result, Verdict) and result.outcome is Outcome.RIGHT:
                return result
            screened.append(result)
        decided = [result for result in screened if isinstance(result, Verdict)]
        return _best(decided) if len(decided) == len(screened) else tuple(screened)

    def judge(self, case: Case) -> Verdict:
        """Judges what is left in turn, until one is right."""
        assert isinstance(case, tuple)
        verdicts = []
        for result in case:
            verdicts.append(result if isinstance(result, Verdict) else self.verifier.judge(result))
            if verdicts[-1].outcome is Outcome.RIGHT:
                break
        return _best(verdicts)

    @property
    def libraries(self) -> frozenset[str]:
        """Those of the verifier."""
        return self.verifier.libraries

    def prepare(self) -> None:
        """Prepares the verifier."""
        self.verifier.prepare()


def _best(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict of the answer that a response comes closest to; the first of equals."""

    def worth(verdict: Verdict) -> tuple[int, float]:
        reward = -math.inf if verdict.reward is None else verdict.reward
        return _WORST_FIRST.index(verdict.outcome), reward

    return max(verdicts, key=worth)

"""Equality of strings."""

from __future__ import annotations

from dataclasses import dataclass

from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify.base import Verifier
from hacrl.verify.extract import extract_gold, whole_answer

__all__ = ["Exact"]


@dataclass(frozen=True, slots=True)
class Exact(Verifier):
    """Right if answer and gold are the same string, surrounding white space aside.

    Args:
        marker: text after which an answer stands; None if the whole response is the answer (what
            follows the reasoning, if there is any).
        correct, wrong: rewards.
    """

    marker: str | None = "####"
    correct: float = 1.0
    wrong: float = 0.0

    def screen(self, prompt: Prompt, response: str) -> Verdict:
        """Decides everything. The gold is not verifiable if it is empty."""
        marked = self.marker is not None
        gold = extract_gold(prompt.gold, self.marker) if marked else prompt.gold.strip()
        answer = whole_answer(response, self.marker)
        if not gold:
            return self.verdict(Outcome.NOT_VERIFIABLE)
        if not answer:
            return self.verdict(Outcome.NO_ANSWER)
        return self.verdict(Outcome.RIGHT if answer == gold else Outcome.WRONG, answer)

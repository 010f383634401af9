r"""Equality of strings.

Markup around all of an answer (`**Yes**`, `\text{Yes}`, `$Yes$`) and a final full stop are no part
of it, in answer and reference answer alike. Everything else counts: case, white space inside,
punctuation.
"""

from __future__ import annotations

from dataclasses import dataclass

from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify.base import Verifier
from hacrl.verify.extract import extract_gold, whole_answer
from hacrl.verify.lines import bare

__all__ = ["Exact"]


@dataclass(frozen=True, slots=True)
class Exact(Verifier):
    """Right if answer and reference answer are the same string, markup around them and a full stop
    aside.

    Args:
        marker: text after which an answer stands; None if the whole response is the answer (what
            follows the reasoning, if there is any).
        correct, wrong: rewards.
    """

    marker: str | None = "####"
    correct: float = 1.0
    wrong: float = 0.0

    def screen(self, prompt: Prompt, response: str) -> Verdict:
        """Decides everything. The reference answer is not verifiable if it is empty."""
        marked = self.marker is not None
        gold = extract_gold(prompt.gold, self.marker) if marked else prompt.gold.strip()
        answer = whole_answer(response, self.marker)
        if not gold:
            return self.verdict(Outcome.NOT_VERIFIABLE)
        if not answer:
            return self.verdict(Outcome.NO_ANSWER)
        same = answer == gold or _plain(answer) == _plain(gold)
        return self.verdict(Outcome.RIGHT if same else Outcome.WRONG, answer)


def _plain(text: str) -> str:
    text = bare(text)
    if len(text) > 1 and text.endswith(".") and (text[-2].isalnum() or text[-2] in "*_`$})"):
        text = text[:-1]
    return bare(text)

r"""Mathematical answers, compared by value.

Accepted for each other, among others: fractions, decimals and percentages; `\pi/4` and `pi/4`;
`\text{21}` and 21; numbers with a unit, a currency sign or separated thousands; sets in any order;
rearranged equations; `x=5` for a gold of 5. Two plain decimal numbers are compared exactly; for
everything else see `equality`.

Known misses, kept as a table in the tests. Judged wrong though equal: `x<3` for the interval
(-∞, 3), and `i^2` for -1. Judged right though different: an equation whose right side is the gold
(`6=5` for 5), a number whose base is stated on one side only (`11_2` for 11), and a tuple without
its parentheses. Not verifiable, whatever the response says: golds that math-verify cannot read,
such as times of the form `6:00`, `true`, and code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify.base import Case, Verifier
from hacrl.verify.extract import extract_answer, extract_gold
from hacrl.verify.normalize import normalize, number_in_base, plain_number

__all__ = ["MAX_ANSWER", "Math"]

MAX_ANSWER = 1_000
"""Characters. A longer answer is wrong without being parsed, a longer gold is not verifiable."""


class _Pair(NamedTuple):
    gold: str
    answer: str


@dataclass(frozen=True, slots=True)
class Math(Verifier):
    """Right if answer and gold have the same mathematical value.

    Args:
        marker: text after which an answer stands; None for no marker.
        last_number: whether the last number of a response with neither box nor marker counts.
        correct, wrong: rewards.
    """

    marker: str | None = "####"
    last_number: bool = False
    correct: float = 1.0
    wrong: float = 0.0

    def screen(self, prompt: Prompt, response: str) -> Verdict | Case:
        """Decides responses without an answer, answers that are too long, and plain numbers.

        A response without an answer is wrong whatever the gold is.
        """
        answer = extract_answer(response, self.marker, self.last_number)
        if answer is None:
            return self.verdict(Outcome.NO_ANSWER)
        gold = extract_gold(prompt.gold, self.marker)
        if not 0 < len(gold) <= MAX_ANSWER:
            return self.verdict(Outcome.NOT_VERIFIABLE, answer[:MAX_ANSWER])
        if len(answer) > MAX_ANSWER:
            return self.verdict(Outcome.WRONG, answer[:MAX_ANSWER])
        pair = _Pair(normalize(gold), normalize(answer))
        for value in (plain_number, number_in_base):
            gold_value, answer_value = value(pair.gold), value(pair.answer)
            if gold_value is not None and answer_value is not None:
                same = gold_value == answer_value
                return self.verdict(Outcome.RIGHT if same else Outcome.WRONG, pair.answer)
        return pair

    def judge(self, case: Case) -> Verdict:
        """Unbounded: a power tower takes all the time and memory there is."""
        from hacrl.verify.equality import equal, read

        assert isinstance(case, _Pair)
        gold = read(case.gold)
        if not gold:
            return self.verdict(Outcome.NOT_VERIFIABLE, case.answer)
        try:
            answer = read(case.answer)
            right = bool(answer) and equal(gold, answer)
        except (MemoryError, RecursionError):
            right = False  # too big to be evaluated, which is the answer's own doing
        return self.verdict(Outcome.RIGHT if right else Outcome.WRONG, case.answer)

    def prepare(self) -> None:
        """Imports math-verify and has it build its parser, about half a second together."""
        from hacrl.verify.equality import read

        read(r"\frac{x}{2}")

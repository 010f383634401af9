r"""Mathematical answers, compared by value.

Accepted for each other, among others: fractions, decimals and percentages; `\pi/4` and `pi/4`;
`\text{21}` and 21; numbers with and without a unit, a currency sign or separated thousands; sets in
any order; rearranged equations; `x=5` for a reference answer of 5. Two plain decimal numbers are
compared exactly; for everything else see `comparison`.

Strict on purpose, kept as a table in the tests: a subtraction of plain numbers is a range or a date
(`7-5` is not 2), a row of letters is a word (`xy` is not `yx`), a numeral without its base is in
base ten, a ratio is a text (`2:3` is not 2/3), and `i^2` is not -1. Not verifiable: reference
answers that belong to a formula but that the parser cannot read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify.base import Case, Verifier
from hacrl.verify.extract import extract_answer, extract_gold
from hacrl.verify.normalize import normalize, plain_number

__all__ = ["MAX_ANSWER", "Math"]

MAX_ANSWER = 1_000
"""Characters. A longer answer is wrong without being parsed, a longer reference not verifiable."""


class _Pair(NamedTuple):
    gold: str
    answer: str


@dataclass(frozen=True, slots=True)
class Math(Verifier):
    """Right if answer and reference answer have the same mathematical value.

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

        A response without an answer is wrong whatever the reference answer is.
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
        numbers = plain_number(pair.gold), plain_number(pair.answer)
        if None not in numbers:
            same = numbers[0] == numbers[1]
            return self.verdict(Outcome.RIGHT if same else Outcome.WRONG, pair.answer)
        return pair

    def judge(self, case: Case) -> Verdict:
        """Unbounded: a power tower takes all the time and memory there is."""
        from hacrl.verify.comparison import same_answer

        assert isinstance(case, _Pair)
        try:
            right = same_answer(case.gold, case.answer)
        except (MemoryError, RecursionError):
            right = False  # too big to be evaluated, which is the answer's own doing
        if right is None:
            return self.verdict(Outcome.NOT_VERIFIABLE, case.answer)
        return self.verdict(Outcome.RIGHT if right else Outcome.WRONG, case.answer)

    @property
    def libraries(self) -> frozenset[str]:
        """The parser and the table of units, about a second together."""
        return frozenset({"hacrl.verify.formulas_loaded"})

    def prepare(self) -> None:
        """Loads them."""
        import hacrl.verify.formulas_loaded  # noqa: F401

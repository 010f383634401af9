"""Worked solutions, right and wrong: `12+7=19;19-5=14;####14` for the problem `12+7-5=`."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from scripts.demo_models.problems import Problem, stays_in_range

__all__ = ["FLAWLESS", "ErrorRates", "final_answer", "is_well_formed", "write_solution"]

MARKER = "####"
"""Stands before the final answer."""

SLIPS = (-10, -2, -1, 1, 2, 10)
"""How far off a wrong step may be: one digit."""

_NUMBER = r"-?\d+"
_STEP = re.compile(rf"({_NUMBER})([+-]\d+)=({_NUMBER});")
_SOLUTION = re.compile(rf"(?:{_NUMBER}[+-]\d+={_NUMBER};)+{MARKER}{_NUMBER}")


@dataclass(frozen=True)
class ErrorRates:
    """Share of wrong steps, 0 to 1, by operation."""

    addition: float
    subtraction: float

    def of(self, term: int) -> float:
        """The rate of a step that adds the signed number `term`."""
        return self.addition if term > 0 else self.subtraction


FLAWLESS = ErrorRates(addition=0.0, subtraction=0.0)


def write_solution(problem: Problem, rates: ErrorRates, rng: random.Random) -> str:
    """A solution in which each step is wrong at the rate of its operation.

    The steps after a wrong one go on from the wrong value, and the final answer is the last value:
    a solution always agrees with itself, only arithmetic is ever wrong. A step stays right where
    every slip would leave the range.
    """
    value = problem.start
    steps = []
    for index, term in enumerate(problem.terms):
        result = value + term
        if rng.random() < rates.of(term):
            rest = problem.terms[index + 1 :]
            wrong = [result + slip for slip in SLIPS if stays_in_range(result + slip, rest)]
            if wrong:
                result = rng.choice(wrong)
        steps.append(f"{value}{term:+d}={result};")
        value = result
    return "".join(steps) + f"{MARKER}{value}"


def final_answer(response: str) -> str | None:
    """What follows the last marker, None without one."""
    _, marker, answer = response.rpartition(MARKER)
    return answer.strip() if marker else None


def is_well_formed(problem: Problem, response: str) -> bool:
    """Whether the response works out this problem, be its steps right or wrong."""
    if not _SOLUTION.fullmatch(response):
        return False
    steps = _STEP.findall(response)
    if [int(term) for _, term, _ in steps] != list(problem.terms):
        return False
    value = str(problem.start)
    for left, _, result in steps:
        if left != value:
            return False
        value = result
    return final_answer(response) == value

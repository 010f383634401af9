"""The task: chains of additions and subtractions such as `12+7-5=`."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Problem", "demo_problems", "draw_problem", "stays_in_range", "write_problems"]

MAX_VALUE = 99
"""Every intermediate result lies within 0..MAX_VALUE, after a wrong step too."""

MAX_TERM = 20
"""The largest number that a step adds or subtracts."""

TRAIN_PROBLEMS = 2400
HELDOUT_PROBLEMS = 400


@dataclass(frozen=True)
class Problem:
    """A chain: the first number and the signed terms that follow it."""

    start: int
    terms: tuple[int, ...]

    @property
    def question(self) -> str:
        """The prompt, such as `12+7-5=`."""
        return f"{self.start}" + "".join(f"{term:+d}" for term in self.terms) + "="

    @property
    def answer(self) -> str:
        """The right result, such as `14`."""
        return str(self.start + sum(self.terms))

    @property
    def kind(self) -> str:
        """`addition` or `subtraction` if all steps are, else `mixed`."""
        if all(term > 0 for term in self.terms):
            return "addition"
        if all(term < 0 for term in self.terms):
            return "subtraction"
        return "mixed"


def demo_problems(seed: int) -> tuple[list[Problem], list[Problem]]:
    """Problems to train on and problems held out, no two of them the same."""
    rng = random.Random(f"{seed}/problems")
    problems: dict[Problem, None] = {}
    while len(problems) < TRAIN_PROBLEMS + HELDOUT_PROBLEMS:
        problems[draw_problem(rng)] = None
    drawn = list(problems)
    return drawn[HELDOUT_PROBLEMS:], drawn[:HELDOUT_PROBLEMS]


def draw_problem(
    rng: random.Random,
    *,
    counts: Sequence[int] = (1, 2, 3),
    signs: Sequence[int] = (1, -1),
    sizes: tuple[int, int] = (1, MAX_TERM),
) -> Problem:
    """A chain whose intermediate results are all in the range.

    Args:
        counts: how many terms follow the first number; one of these.
        signs: of the terms, each one of these.
        sizes: the smallest and the largest term.
    """
    count = rng.choice(counts)
    drawn = [rng.choice(signs) for _ in range(count)]
    while True:  # the signs are kept, lest chains of one sign become rare
        start = rng.randint(1, MAX_VALUE)
        terms = tuple(sign * rng.randint(*sizes) for sign in drawn)
        if stays_in_range(start, terms):
            return Problem(start, terms)


def stays_in_range(value: int, terms: Sequence[int]) -> bool:
    """Whether `value` and all right results after it are in the range."""
    if not 0 <= value <= MAX_VALUE:
        return False
    for term in terms:
        value += term
        if not 0 <= value <= MAX_VALUE:
            return False
    return True


def write_problems(path: Path, problems: Sequence[Problem]) -> None:
    """Write JSON lines of `question`, `answer` and `kind`."""
    rows = [{"question": p.question, "answer": p.answer, "kind": p.kind} for p in problems]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8", newline="\n")

"""The problems of the study: some to train on, and seven held-out sets of graded difficulty.

All are chains of additions and subtractions, see `scripts.demo_models.problems`. The sets stand for
the paper's seven benchmarks: five lie inside the distribution of training, two outside.
"""

from __future__ import annotations

import random
from pathlib import Path

from scripts.demo_models.problems import Problem, draw_problem, write_problems

__all__ = ["HELD_OUT", "TRAIN", "TUNING", "study_problems", "write_sets"]

TRAIN = "train"
TUNING = "tuning"
"""Held out as well, to choose learning rates on; none of the results is measured on it."""

_SIZES = {TRAIN: 4000, TUNING: 200}
_HELD_OUT_SIZE = 100

HELD_OUT = {
    "one": "one operation",
    "two": "two operations",
    "three": "three operations",
    "plus": "three additions",
    "minus": "three subtractions",
    "four": "four operations; at most three are trained on",
    "big": "two operations with terms of 21 to 30; at most 20 are trained on",
}
"""Each held-out set, in words."""


def study_problems(seed: int) -> dict[str, list[Problem]]:
    """The problems of every set, by name; no problem is in two sets."""
    rng = random.Random(f"{seed}/study")
    taken: set[Problem] = set()
    sets: dict[str, list[Problem]] = {}
    for name in (*HELD_OUT, TUNING, TRAIN):
        sets[name] = []
        while len(sets[name]) < _SIZES.get(name, _HELD_OUT_SIZE):
            problem = _draw(name, rng)
            if problem not in taken:
                taken.add(problem)
                sets[name].append(problem)
    return sets


def write_sets(folder: Path, sets: dict[str, list[Problem]]) -> None:
    """Write `<name>.jsonl` for every set."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, problems in sets.items():
        write_problems(folder / f"{name}.jsonl", problems)


def draw_warm_up(rng: random.Random) -> Problem:
    """What the starting models have seen: longer chains and larger terms than are trained on."""
    return draw_problem(rng, counts=(1, 2, 3, 4), sizes=(1, 30))


def _draw(name: str, rng: random.Random) -> Problem:
    match name:
        case "one":
            return draw_problem(rng, counts=(1,))
        case "two":
            return draw_problem(rng, counts=(2,))
        case "three":
            return draw_problem(rng, counts=(3,))
        case "plus":
            return draw_problem(rng, counts=(3,), signs=(1,))
        case "minus":
            return draw_problem(rng, counts=(3,), signs=(-1,))
        case "four":
            return draw_problem(rng, counts=(4,))
        case "big":
            return draw_problem(rng, counts=(2,), sizes=(21, 30))
        case _:
            return draw_problem(rng)

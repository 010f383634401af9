"""The parts of the benchmark by name."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed import pairs
from benchmarks.speed.bounds import bounds
from benchmarks.speed.controller import shares
from benchmarks.speed.race import race
from benchmarks.speed.work import ModelName, Work

__all__ = ["PARTS"]


def _each(
    *measures: Callable[[Work, Path], dict[str, Any]],
    cases: Callable[[Sequence[ModelName]], list[Work]] = pairs.cases,
) -> Callable[[list[ModelName], Path], list[dict[str, Any]]]:
    def run(models: list[ModelName], scratch: Path) -> list[dict[str, Any]]:
        found = []
        for work in cases(models):
            for measure in measures:
                found.append(measure(work, scratch))
                sys.stderr.write(json.dumps(found[-1], ensure_ascii=False) + "\n")
        return found

    return run


def _loud(models: Sequence[ModelName]) -> list[Work]:
    """Both kinds of lengths; what has no signal makes no difference here."""
    return pairs.cases(models, (False,))


PARTS: dict[str, Callable[[list[ModelName], Path], Any]] = {
    "a": _each(pairs.steps),
    "b": _each(pairs.sampling, cases=_loud),
    "c": _each(pairs.updates, cases=pairs.ends),
    # One after the other: memory is too small for five processes with a larger model.
    "d": _each(pairs.as_many_updates, pairs.one_pass, cases=pairs.ends),
    "d2": _each(pairs.two_cores, cases=pairs.ends),
    "e": lambda models, scratch: shares(scratch),
    "g": lambda models, scratch: race(scratch),
    "bounds": _each(bounds, cases=_loud),
}

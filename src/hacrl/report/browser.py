"""A sample of rollouts to browse: who answered what, and how every learner used it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hacrl.algorithm.objective import LOG_RATIO_LIMIT
from hacrl.report.reading import RunData

__all__ = ["STEPS_SHOWN", "Sample", "sample_rollouts", "spread"]

STEPS_SHOWN = 6
"""Steps that the sample is spread over at most."""
_LONGEST = 4000
"""Characters of one text that are shown at most."""
_SHORTEST = 200
_BUDGET = 4_000_000
"""Characters of all texts together."""
_STEP_FILE = re.compile(r"step-(\d+)\.parquet")
_COLUMNS = (
    *("prompt", "prompt_id", "prompt_text", "gold", "agent", "sample", "text", "reward"),
    *("outcome", "answer", "finished", "length", "unshareable"),
)


@dataclass(frozen=True)
class Sample:
    """Rollouts of some prompts of some steps.

    Args:
        steps: nested plain values for the page's script.
        lessons: all lessons of the steps that were read, by step.
        left_out: what is not shown, in sentences.
    """

    steps: Sequence[Mapping[str, Any]]
    lessons: Mapping[int, Sequence[Mapping[str, Any]]]
    left_out: Sequence[str]


def sample_rollouts(run: RunData, prompts: int) -> Sample:
    """Take a number of prompts: of the first and last stored step, and of others evenly between.

    Args:
        prompts: over all steps; 0 shows none, and reads lessons all the same.
    """
    files = {
        int(match[1]): path
        for path in sorted((run.path / "rollouts").glob("step-*.parquet"))
        if (match := _STEP_FILE.fullmatch(path.name))
    }
    chosen = spread(sorted(files), min(STEPS_SHOWN, prompts or STEPS_SHOWN))
    notes: list[str] = []
    lessons = {
        step: rows
        for step in chosen
        if (rows := _read(run.path / "lessons" / files[step].name, None, notes)) is not None
    }
    if not prompts:
        return Sample((), lessons, notes)
    tables = {
        step: rows for step in chosen if (rows := _read(files[step], _COLUMNS, notes)) is not None
    }
    picked: list[tuple[int, list[Mapping[str, Any]]]] = []
    stored = 0
    for i, (step, rows) in enumerate(tables.items()):
        groups: dict[int, list[Mapping[str, Any]]] = {}
        for row in rows:
            groups.setdefault(row["prompt"], []).append(row)
        stored += len(groups)
        share = prompts // len(tables) + (i < prompts % len(tables))
        picked += [(step, groups[p]) for p in spread(sorted(groups), share)]
    shown = [row for _, group in picked for row in group]
    longest = max(_SHORTEST, min(_LONGEST, _BUDGET // max(1, len(shown))))
    steps = [
        {
            "step": step + 1,
            "prompts": [
                _prompt(group, lessons.get(step, ()), longest) for of, group in picked if of == step
            ],
        }
        for step in tables
    ]
    if picked:
        which = ", ".join(str(step["step"]) for step in steps)
        notes.append(
            f"shown are {len(picked)} of the {stored:,} prompts of steps {which}, spread evenly; "
            f"{len(files) - len(tables):,} other stored steps are not shown (--browse N takes more)"
        )
    cut = sum(len(row["text"]) > longest for row in shown)
    if cut:
        notes.append(f"{cut} responses are cut after {longest:,} characters")
    return Sample(steps, lessons, notes)


def spread(items: Sequence[int], count: int) -> list[int]:
    """The first, the last, and others evenly between; all if there are no more than `count`."""
    if count <= 1:
        return list(items[:count])
    if len(items) <= count:
        return list(items)
    return [items[round(i * (len(items) - 1) / (count - 1))] for i in range(count)]


def _read(
    path: Path, columns: Sequence[str] | None, notes: list[str]
) -> list[Mapping[str, Any]] | None:
    try:
        rows: list[Mapping[str, Any]] = pq.read_table(
            path, columns=list(columns) if columns else None
        ).to_pylist()
    except (OSError, pa.ArrowException):
        notes.append(f"{path.parent.name}/{path.name} is missing or damaged")
        return None
    return rows


def _prompt(
    group: Sequence[Mapping[str, Any]], lessons: Iterable[Mapping[str, Any]], longest: int
) -> dict[str, Any]:
    first = group[0]
    made: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for lesson in lessons:
        if lesson["prompt"] == first["prompt"]:
            made.setdefault((lesson["agent"], lesson["sample"]), []).append(lesson)
    return {
        "id": first["prompt_id"],
        "text": _cut(first["prompt_text"], longest),
        "gold": _cut(first["gold"], longest),
        "answers": [
            {
                "agent": row["agent"],
                "sample": row["sample"] + 1,
                "text": _cut(row["text"], longest),
                "reward": row["reward"],
                "outcome": row["outcome"].replace("_", " "),
                "answer": None if row["answer"] is None else _cut(row["answer"], longest),
                "finished": row["finished"],
                "tokens": row["length"],
                "lessons": [_lesson(le) for le in made.get((row["agent"], row["sample"]), ())],
            }
            for row in group
        ],
    }


def _lesson(row: Mapping[str, Any]) -> dict[str, Any]:
    log_ratio = row["log_ratio"]
    limited = log_ratio is not None and abs(log_ratio) > LOG_RATIO_LIMIT
    if row["left_out"] is not None:
        fate = f"left out: {row['left_out'].replace('_', ' ')}"
    elif log_ratio is None:
        fate = "nothing to learn, the advantage is 0"
    elif row["teaches"]:
        fate = "taught"
    else:
        fate = "no gradient, ratio beyond its limit" if limited else "no gradient, clipped"
    return {
        "learner": row["learner"],
        "advantage": row["advantage"] if math.isfinite(row["advantage"]) else None,
        "ratio": None
        if log_ratio is None
        else math.exp(max(-LOG_RATIO_LIMIT, min(LOG_RATIO_LIMIT, log_ratio))),
        "clip": _clip(row["below"], row["above"]),
        "taught": row["teaches"],
        "fate": fate,
    }


def _clip(below: float | None, above: float | None) -> str | None:
    """Where a row's ratio lay; at token level, how many of its tokens' did."""
    if below is None or above is None:
        return None
    if below in (0, 1) and above in (0, 1):
        return "below" if below else "above" if above else "inside"
    return f"{below:.0%} of tokens below, {above:.0%} above"


def _cut(text: str, longest: int) -> str:
    left = len(text) - longest
    return text if left <= 0 else f"{text[:longest]} […{left:,} more characters]"

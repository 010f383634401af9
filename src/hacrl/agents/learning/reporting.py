"""What an agent says of one step's learning: metrics, and one record per lesson."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hacrl.agents.learning.learner import UpdateOutcome
from hacrl.agents.learning.lessons import Lesson
from hacrl.agents.learning.outcomes import RowOutcome
from hacrl.algorithm.objective import LOG_RATIO_LIMIT

__all__ = ["LearnReport", "LessonRecord", "Metrics", "make_report"]

Metrics = dict[str, Any]
"""Nested plain values, as they are written to `metrics.jsonl`. None is a gap, never a zero."""


@dataclass(frozen=True, slots=True)
class LessonRecord:
    """What one learner made of one response.

    `advantage` includes the discrepancy coefficient; `tokens` is the length in the learner's
    tokens; `left_out` says why it could not be used. The rest is None for rows that were not
    computed because their advantage is zero.
    """

    learner: str
    agent: str
    prompt: int
    sample: int
    advantage: float
    tokens: int
    left_out: str | None
    update: int | None
    log_ratio: float | None
    below: float | None
    above: float | None
    teaches: bool
    finite: bool | None


@dataclass(frozen=True, slots=True)
class LearnReport:
    """Metrics of one agent's learning in one step, its lessons, and the updates that it skipped.

    `skipped` holds their numbers within the step, as `LessonRecord.update` does.
    """

    agent: str
    metrics: Metrics
    lessons: tuple[LessonRecord, ...]
    skipped: tuple[int, ...] = ()


def make_report(
    name: str,
    sources: Sequence[str],
    lessons: Sequence[Lesson],
    rows: Mapping[int, RowOutcome],
    updates: Sequence[UpdateOutcome],
    *,
    skipped_in_a_row: int,
    reduced_micro_batch_tokens: int | None,
) -> LearnReport:
    """Sum up one step.

    Args:
        rows: outcome of each computed lesson, by index.
        skipped_in_a_row: updates up to now, earlier steps included.
        reduced_micro_batch_tokens: that memory had room for, None if for the recipe's.
    """
    applied = [update for update in updates if not update.skipped]
    metrics: Metrics = {
        "updates": len(applied),
        "skipped_updates": len(updates) - len(applied),
        "skipped_in_a_row": skipped_in_a_row,
        "reduced_micro_batch_tokens": reduced_micro_batch_tokens,
        "on_policy": len(updates) == 1,
        "loss": _mean(u.loss for u in applied),
        "gradient_norm": _mean(u.gradient_norm for u in applied),
        "learning_rate": updates[-1].learning_rate if updates else None,
        "logprob_gap": max(_gaps(lessons, rows), default=None),
        "own": _source_metrics(lessons, rows, name),
        "sources": {source: _source_metrics(lessons, rows, source) for source in sources},
    }
    records = tuple(_record(name, lesson, rows.get(i)) for i, lesson in enumerate(lessons))
    skipped = tuple(number for number, update in enumerate(updates) if update.skipped)
    return LearnReport(name, metrics, records, skipped)


def _gaps(lessons: Sequence[Lesson], rows: Mapping[int, RowOutcome]) -> Iterator[float]:
    """Nats per token between sampler and learner, of own rows before the first update."""
    for i, row in rows.items():
        lesson = lessons[i]
        if lesson.recomputed is not None:
            difference = lesson.old_logprob - lesson.rollout.logprob
            if math.isfinite(difference):
                yield abs(difference) / lesson.rollout.length
        elif lesson.own and row.update == 0 and row.finite:
            yield abs(row.log_ratio)


def _source_metrics(
    lessons: Sequence[Lesson], rows: Mapping[int, RowOutcome], source: str
) -> Metrics:
    """Shares are of the finite rows that were computed, except `teaching`, which is of all rows."""
    indices = [i for i, lesson in enumerate(lessons) if lesson.rollout.agent == source]
    computed = [rows[i] for i in indices if i in rows]
    done = [row for row in computed if row.finite]
    ratios = [math.exp(max(-LOG_RATIO_LIMIT, min(LOG_RATIO_LIMIT, r.log_ratio))) for r in done]
    usable = [lessons[i] for i in indices if lessons[i].left_out is None]
    return {
        "rows": len(indices),
        "computed": len(computed),
        "not_finite": len(computed) - len(done),
        "left_out": dict(Counter(r for i in indices if (r := lessons[i].left_out) is not None)),
        "ratio_mean": _mean(ratios),
        "ratio_std": statistics.stdev(ratios) if len(ratios) > 1 else None,
        "inside": _mean(1.0 - r.below - r.above for r in done),
        "below": _mean(r.below for r in done),
        "above": _mean(r.above for r in done),
        "limited": sum(r.limited for r in done),
        "teaching": sum(r.teaches for r in done) / len(indices) if indices else None,
        "tokens_here": _mean(len(lesson.response_ids) for lesson in usable),
        "tokens_at_source": _mean(lesson.rollout.length for lesson in usable),
    }


def _record(learner: str, lesson: Lesson, row: RowOutcome | None) -> LessonRecord:
    return LessonRecord(
        learner=learner,
        agent=lesson.rollout.agent,
        prompt=lesson.rollout.prompt,
        sample=lesson.rollout.sample,
        advantage=lesson.advantage,
        tokens=len(lesson.response_ids),
        left_out=lesson.left_out,
        update=row.update if row else None,
        log_ratio=row.log_ratio if row else None,
        below=row.below if row else None,
        above=row.above if row else None,
        teaches=row.teaches if row else False,
        finite=row.finite if row else None,
    )


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return math.fsum(numbers) / len(numbers) if numbers else None

"""What an audit found, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hacrl.audit.tries import Audited, Expected, Tried, Unjudged
from hacrl.records import Outcome

__all__ = ["Findings", "Kind", "by_kind", "share"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of variations.

    Args:
        name: what was done to the reference answers.
        tried: how often.
        faults: variations that were scored wrongly, in the order of the reference answers:
            rewarded though wrong, or not rewarded though right.
    """

    name: str
    tried: int
    faults: tuple[Tried, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """What an audit of reference answers found.

    Args:
        golds: scored by themselves.
        tried: in other forms, and wrong answers near them.
        unjudged: reference answers that no response can be judged by.
        tests: ids of reference answers that are tests without a solution, so nothing is right by
            itself.
    """

    golds: Sequence[Audited]
    tried: Sequence[Tried]
    unjudged: Sequence[Unjudged]
    tests: frozenset[str] = frozenset()

    @property
    def not_right(self) -> list[Audited]:
        """Reference answers that are judged and not right by themselves."""
        excluded = {row.prompt.id for row in self.unjudged} | self.tests
        return [
            row
            for row in self.golds
            if row.verdict.outcome is not Outcome.RIGHT and row.prompt.id not in excluded
        ]

    def kinds(self, expected: Expected) -> list[Kind]:
        """The kinds of tries of which that is expected, those with most findings first."""
        return by_kind([row for row in self.tried if row.attempt.expected is expected])

    @property
    def false_negatives(self) -> int:
        return sum(row.false_negative for row in self.tried)

    @property
    def false_positives(self) -> int:
        return sum(row.false_positive for row in self.tried)

    @property
    def none(self) -> bool:
        """Whether there is nothing to look at."""
        return not (self.not_right or self.unjudged or self.false_negatives or self.false_positives)


def by_kind(tried: Sequence[Tried]) -> list[Kind]:
    """Tries by kind, those with most findings first, then by name."""
    groups: dict[str, list[Tried]] = {}
    for row in tried:
        groups.setdefault(row.attempt.kind, []).append(row)
    kinds = [
        Kind(name, len(group), tuple(filter(_is_fault, group))) for name, group in groups.items()
    ]
    return sorted(kinds, key=lambda kind: (-len(kind.faults), kind.name))


def _is_fault(row: Tried) -> bool:
    if row.attempt.expected is Expected.STRICT:
        return row.verdict.outcome is not Outcome.RIGHT
    return row.false_negative or row.false_positive


def share(count: int, total: int) -> str:
    """Count and share. Rounding makes a share neither nothing nor everything."""
    if not count:
        return "0"
    part = count / total
    if 0.9995 <= part < 1:
        return f"{count:,} (>99.9%)"
    return f"{count:,} (<0.1%)" if part < 0.0005 else f"{count:,} ({part:.1%})"

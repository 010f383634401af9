"""What an audit found, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hacrl.audit.tries import Audited, Expected, Tried, Unjudged
from hacrl.records import Outcome

__all__ = ["Findings", "Kind", "by_kind", "share"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of tries.

    Args:
        name: what was done to the golds.
        tried: how often.
        found: tries that went wrong, in the order of the golds: paid though wrong, or not paid
            though right.
    """

    name: str
    tried: int
    found: tuple[Tried, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """What an audit of golds found.

    Args:
        golds: scored by themselves.
        tried: in other forms, and wrong answers near them.
        unjudged: golds that no response can be judged by.
        tests: ids of golds that are tests without a solution, so nothing is right by itself.
    """

    golds: Sequence[Audited]
    tried: Sequence[Tried]
    unjudged: Sequence[Unjudged]
    tests: frozenset[str] = frozenset()

    @property
    def not_right(self) -> list[Audited]:
        """Golds that are not right by themselves, other than those that cannot be judged by."""
        named = {one.prompt.id for one in self.unjudged} | self.tests
        return [
            row
            for row in self.golds
            if row.verdict.outcome is not Outcome.RIGHT and row.prompt.id not in named
        ]

    def kinds(self, expected: Expected) -> list[Kind]:
        """The kinds of tries of which that is expected, those with most findings first."""
        return by_kind([one for one in self.tried if one.one.expected is expected])

    @property
    def false_wrongs(self) -> int:
        return sum(one.false_wrong for one in self.tried)

    @property
    def false_rights(self) -> int:
        return sum(one.false_right for one in self.tried)

    @property
    def none(self) -> bool:
        """Whether there is nothing to look at."""
        return not (self.not_right or self.unjudged or self.false_wrongs or self.false_rights)


def by_kind(tried: Sequence[Tried]) -> list[Kind]:
    """Tries by kind, those with most findings first, then by name."""
    groups: dict[str, list[Tried]] = {}
    for one in tried:
        groups.setdefault(one.one.kind, []).append(one)
    kinds = [Kind(name, len(group), tuple(filter(_amiss, group))) for name, group in groups.items()]
    return sorted(kinds, key=lambda kind: (-len(kind.found), kind.name))


def _amiss(one: Tried) -> bool:
    if one.one.expected is Expected.STRICT:
        return one.verdict.outcome is not Outcome.RIGHT
    return one.false_wrong or one.false_right


def share(count: int, total: int) -> str:
    """Count and share. Rounding makes a share neither nothing nor everything."""
    if not count:
        return "0"
    part = count / total
    if 0.9995 <= part < 1:
        return f"{count:,} (>99.9%)"
    return f"{count:,} (<0.1%)" if part < 0.0005 else f"{count:,} ({part:.1%})"

"""What a source yields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hacrl.records import Turn

__all__ = ["Problem"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a source, before the task's instruction is applied.

    Args:
        question: the problem itself.
        gold: the reference answer, or a text that ends in it.
        metadata: what a verifier may need beyond the reference answer.
        alternatives: further answers that are right as well.
        system: a system message that the problem brings along.
        history: turns of a conversation before the question.
        solution: a worked solution, where the source has one; the audit scores it.
    """

    question: str
    gold: str
    metadata: Mapping[str, object] = field(default_factory=dict)
    solution: str | None = None
    alternatives: tuple[str, ...] = ()
    system: str | None = None
    history: tuple[Turn, ...] = ()

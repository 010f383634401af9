"""Which steps an agent has learned from, also if it was lost and taken back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["learned_steps"]


def learned_steps(rows: Sequence[Mapping[str, Any]], updates: int | None = None) -> list[int]:
    """The steps, from 0, that an agent's weights have learned from.

    An agent that was lost while the others went on missed steps, and came back as it was when it
    was last saved: what it had learned since then is in no weights any more.

    Args:
        rows: of `metrics.jsonl`, this agent's alone, by step.
        updates: that the weights have seen, None for as many as there are.
    """
    most = math.inf if updates is None else updates
    steps = []
    for row in reversed(rows):
        if row["policy_version"] + row["updates"] <= most:
            steps.append(row["step"])
            most = min(most, row["policy_version"])
    return steps[::-1]

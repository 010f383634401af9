"""What is wrong with the metrics of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["complaints"]

_EXACT = 1e-4
"""Nats per token within which sampling and learning agree in single precision."""


def complaints(rows: Sequence[Mapping[str, Any]], *, exact: bool) -> list[str]:
    """One line for each fault, in the order of the rows.

    Args:
        rows: metrics of all agents and steps.
        exact: sampling and learning must agree to rounding in single precision.
    """
    texts = []
    for row in rows:
        place = f"{row['agent']} in step {row['step']}"
        if row["skipped_updates"]:
            texts.append(f"{place}: {row['skipped_updates']} updates were not finite")
        if row["unscored"]:
            texts.append(f"{place}: {row['unscored']} responses were not scored")
        gap = row["logprob_gap"]
        if exact and gap is not None and gap > _EXACT:
            texts.append(f"{place}: sampling and learning differ by {gap:.1e} nats per token")
    if not any(row["updates"] for row in rows):
        texts.append("no update was made")
    return texts

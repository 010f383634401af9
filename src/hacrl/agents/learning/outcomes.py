"""What the rows of an update did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from hacrl.algorithm.objective import Terms

__all__ = ["RowOutcome", "row_outcomes"]


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """What one computed row did.

    Args:
        update: number of the optimizer update within the step.
        log_ratio: log of the sequence ratio in nats per token, before the limit.
        below: 1 if the ratio was below the clip interval (at token level: share of tokens).
        above: likewise above.
        limited: whether a ratio was beyond the limit before exp.
        teaches: whether the row had a gradient.
        finite: whether its ratio and its value are.
    """

    update: int
    log_ratio: float
    below: float
    above: float
    limited: bool
    teaches: bool
    finite: bool


def row_outcomes(
    rows: Sequence[int], terms: Terms, value_R: Tensor, update: int
) -> dict[int, RowOutcome]:
    """What each row of a micro-batch did.

    Args:
        rows: index of each row in the lessons.
        value_R: objective of each, the KL term included.
        update: number of the optimizer update within the step.
    """
    columns = (
        *(terms.log_ratio_R, terms.below_R, terms.above_R),
        *(terms.limited_R, terms.teaches_R),
        value_R.isfinite() & terms.log_ratio_R.isfinite(),
    )
    values = zip(*(column.tolist() for column in columns), strict=True)
    return {i: RowOutcome(update, *row) for i, row in zip(rows, values, strict=True)}

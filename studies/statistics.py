"""Means over seeds with intervals, paired where two methods are compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

__all__ = ["Interval", "over_seeds"]


@dataclass(frozen=True)
class Interval:
    """A mean over seeds and half the width of its 95% interval, nan with fewer than two seeds."""

    mean: float
    half_width: float
    seeds: int

    @property
    def low(self) -> float:
        """Lower end."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end."""
        return self.mean + self.half_width

    def points(self, signed: bool = False) -> str:
        """In percentage points, such as `+3.3 ± 0.4`."""
        sign = "+" if signed else ""
        if math.isnan(self.half_width):
            return f"{100 * self.mean:{sign}.1f}"
        return f"{100 * self.mean:{sign}.1f} ± {100 * self.half_width:.1f}"


def over_seeds(values: Sequence[float]) -> Interval:
    """Student's 95% interval of a mean; the seeds are the independent units.

    Args:
        values: one per seed, at least one. For a comparison of two methods their differences at
            the same seed, which makes the interval a paired one.
    """
    array = np.asarray(values, dtype=float)
    if len(array) < 2:
        return Interval(float(array.mean()), math.nan, len(array))
    spread = float(array.std(ddof=1)) / math.sqrt(len(array))
    return Interval(
        float(array.mean()), float(stats.t.ppf(0.975, len(array) - 1)) * spread, len(array)
    )

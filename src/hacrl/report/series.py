"""From rows to curves: gaps, means over steps, and intervals over seeds."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hacrl.report.reading import Row, RunData

__all__ = [
    "MOST_POINTS",
    "SMOOTHED",
    "Band",
    "Curve",
    "Group",
    "band",
    "curve",
    "get",
    "group_runs",
    "metric",
    "quarters",
    "smooth",
    "t_interval",
    "thin",
]

Values = NDArray[np.float64]

MOST_POINTS = 300
"""Of a curve; longer ones are drawn as means over neighbouring steps."""
SMOOTHED = 7
"""Steps of the centred mean that is drawn over noisy curves."""

_T975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""97.5% quantiles of Student's t for 1 to 30 degrees of freedom."""


@dataclass(frozen=True)
class Group:
    """Runs that differ by nothing but their seed, and their name."""

    label: str
    runs: tuple[RunData, ...]


@dataclass(frozen=True)
class Curve:
    """Values over completed steps; NaN is a gap."""

    x: Values
    y: Values


@dataclass(frozen=True)
class Band:
    """A mean curve with its 95% interval; NaN ends where a single seed gives none."""

    x: Values
    mean: Values
    low: Values
    high: Values


def group_runs(runs: Sequence[RunData]) -> list[Group]:
    """Put runs together that differ by their seed, and else by their name alone, in this order.

    The same seed twice is no second sample.
    """
    groups: list[list[RunData]] = []
    for run in runs:
        for group in groups:
            seeds = {other.setting("seed") for other in group}
            if _without_seed(run) == _without_seed(group[0]) and run.setting("seed") not in seeds:
                group.append(run)
                break
        else:
            groups.append([run])
    labels = [_label(group) for group in groups]
    return [
        Group(label if labels.count(label) == 1 else f"{label} #{i + 1}", tuple(group))
        for i, (label, group) in enumerate(zip(labels, groups, strict=True))
    ]


def get(row: Row, *path: str) -> float:
    """A number in nested metrics; NaN where there is none."""
    node: Any = row
    for part in path:
        node = node.get(part) if isinstance(node, dict) else None
    return float(node) if isinstance(node, int | float) else math.nan


def curve(rows: Sequence[Row], value: Callable[[Row], float]) -> Curve:
    """A value of each row over the completed steps."""
    return Curve(
        np.array([row["step"] + 1 for row in rows], dtype=float),
        np.array([value(row) for row in rows], dtype=float),
    )


def metric(rows: Sequence[Row], *path: str) -> Curve:
    """A number in nested metrics over the completed steps."""
    return curve(rows, lambda row: get(row, *path))


def smooth(series: Curve) -> Curve:
    """Means over a centred window of `SMOOTHED` steps, shorter at both ends; gaps are skipped."""
    half = SMOOTHED // 2
    windows = [series.y[max(0, i - half) : i + half + 1] for i in range(len(series.y))]
    return Curve(series.x, np.array([_mean(window) for window in windows]))


def thin(series: Curve) -> Curve:
    """At most `MOST_POINTS` points: means over as many neighbours as that takes."""
    size = math.ceil(len(series.x) / MOST_POINTS)
    if size <= 1:
        return series
    starts = range(0, len(series.x), size)
    return Curve(
        np.array([series.x[i : i + size].mean() for i in starts]),
        np.array([_mean(series.y[i : i + size]) for i in starts]),
    )


def band(curves: Sequence[Curve]) -> Band:
    """The mean over curves at every step that any of them has, with its interval over curves."""
    steps = sorted({x for series in curves for x in series.x.tolist()})
    values: dict[float, list[float]] = {x: [] for x in steps}
    for series in curves:
        for x, y in zip(series.x.tolist(), series.y.tolist(), strict=True):
            if not math.isnan(y):
                values[x].append(y)
    made = [t_interval(values[x]) for x in steps]
    columns = np.array(made, dtype=float).reshape(len(steps), 3)
    return Band(np.array(steps), columns[:, 0], columns[:, 1], columns[:, 2])


def t_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and 95% interval by Student's t; a single value has no interval, none no mean."""
    if not values:
        return (math.nan,) * 3
    mean = statistics.fmean(values)
    if len(values) == 1:
        return mean, math.nan, math.nan
    freedom = len(values) - 1
    quantile = (
        _T975[freedom - 1] if freedom <= len(_T975) else statistics.NormalDist().inv_cdf(0.975)
    )
    half = quantile * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def quarters(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of a run in up to four spans of as many steps each."""
    steps = sorted({row["step"] for row in rows})
    count = min(4, len(steps))
    spans = [set(part.tolist()) for part in np.array_split(np.array(steps), count)] if count else []
    return [[row for row in rows if row["step"] in span] for span in spans]


def _mean(values: Values) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def _without_seed(run: RunData) -> dict[str, Any]:
    return {key: value for key, value in run.recipe.items() if key not in ("seed", "name")}


def _label(group: Sequence[RunData]) -> str:
    if len(group) == 1:
        return group[0].label
    letters = zip(*(run.label for run in group), strict=False)
    same = itertools.takewhile(lambda column: len(set(column)) == 1, letters)
    common = "".join(column[0] for column in same).rstrip("-_./ ")
    for ending in ("seed", "-s", "_s", ".s"):
        common = common.removesuffix(ending).rstrip("-_./ ")
    return f"{common or group[0].method} ({len(group)} seeds)"

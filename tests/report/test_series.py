"""Curves: gaps, means, and intervals against textbook values."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from hacrl.report.reading import read_runs
from hacrl.report.series import (
    MOST_POINTS,
    Curve,
    band,
    group_runs,
    metric,
    quarters,
    smooth,
    t_interval,
    thin,
)
from tests.report.conftest import CopyRun


def test_the_interval_is_students(subtests: pytest.Subtests) -> None:
    assert t_interval([]) == pytest.approx((math.nan,) * 3, nan_ok=True)
    assert t_interval([0.5]) == pytest.approx((0.5, math.nan, math.nan), nan_ok=True)
    for freedom in (1, 2, 5, 17, 30):
        with subtests.test(freedom=freedom):
            values = np.arange(freedom + 1, dtype=float)
            mean, low, high = t_interval(values.tolist())
            t = (high - mean) / (values.std(ddof=1) / math.sqrt(len(values)))
            tail = mpmath.betainc(
                freedom / 2, 0.5, 0, freedom / (freedom + t * t), regularized=True
            )
            assert float(tail) == pytest.approx(0.05, abs=2e-4)
            assert mean - low == pytest.approx(high - mean)


def test_many_seeds_take_the_normal_quantile() -> None:
    values = [0.0, 1.0] * 100
    mean, _, high = t_interval(values)
    assert high - mean == pytest.approx(1.96 * np.std(values, ddof=1) / math.sqrt(200), rel=1e-3)


def test_a_band_holds_every_step_that_any_curve_has() -> None:
    curves = [
        Curve(np.array([1.0, 2.0, 3.0]), np.array([0.0, math.nan, 1.0])),
        Curve(np.array([1.0, 2.0]), np.array([1.0, 0.5])),
    ]
    made = band(curves)
    assert made.x.tolist() == [1, 2, 3]
    assert made.mean.tolist() == [0.5, 0.5, 1.0]
    assert np.isnan(made.low).tolist() == [False, True, True]
    assert len(band([]).x) == 0


def test_gaps_are_skipped_by_means_and_stay_where_nothing_is_known() -> None:
    rows = [{"step": i, "agent": "kim", "a": {"b": v}} for i, v in enumerate([1, None, 3, "x"])]
    one = metric(rows, "a", "b")
    assert one.x.tolist() == [1, 2, 3, 4]
    assert one.y.tolist() == pytest.approx([1, math.nan, 3, math.nan], nan_ok=True)
    assert smooth(one).y.tolist() == [2, 2, 2, 2]
    assert np.isnan(metric(rows, "none").y).all()


def test_long_curves_become_means_over_neighbours() -> None:
    x = np.arange(10.0 * MOST_POINTS + 3)
    short = thin(Curve(x, x))
    assert len(short.x) <= MOST_POINTS
    assert short.y[0] == pytest.approx(5.0)
    np.testing.assert_allclose(short.x, short.y)
    assert thin(short) is short


def test_a_run_is_cut_into_spans_of_as_many_steps() -> None:
    def steps(count: int) -> list[list[int]]:
        rows = [{"step": i, "agent": a} for i in range(count) for a in ("kim", "lee")]
        return [sorted({row["step"] for row in part}) for part in quarters(rows)]

    assert steps(0) == []
    assert steps(1) == [[0]]
    assert steps(9) == [[0, 1, 2], [3, 4], [5, 6], [7, 8]]


def test_runs_that_differ_by_seed_are_one_group(copy_run: CopyRun) -> None:
    folders = [copy_run(f"kept-s{seed}", seed=seed) for seed in (0, 1)]
    folders += [copy_run("changed", steps=5), copy_run("again", seed=1)]
    groups = group_runs(read_runs(folders))
    assert [group.label for group in groups] == ["kept (2 seeds)", "changed", "again"]
    assert [len(group.runs) for group in groups] == [2, 1, 1]


def test_labels_of_groups_are_distinct(copy_run: CopyRun) -> None:
    folders = [copy_run(f"{name}", seed=i, steps=4 + i // 2) for i, name in enumerate("pqrt")]
    assert [group.label for group in group_runs(read_runs(folders))] == [
        "hacpo (2 seeds) #1",
        "hacpo (2 seeds) #2",
    ]

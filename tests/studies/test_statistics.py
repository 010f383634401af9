"""Intervals over seeds against closed forms."""

from __future__ import annotations

import math

import pytest

from studies.statistics import over_seeds


def test_students_interval() -> None:
    found = over_seeds([1.0, 2.0, 3.0])
    assert found.mean == pytest.approx(2.0)
    # t(0.975, 2) = 4.302653, the standard error is 1/√3.
    assert found.half_width == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert (found.low + found.high) / 2 == pytest.approx(2.0)


def test_one_seed_has_no_interval() -> None:
    found = over_seeds([0.033])
    assert math.isnan(found.half_width)
    assert found.points(signed=True) == "+3.3"


def test_points() -> None:
    assert over_seeds([-0.01, -0.01]).points(signed=True) == "-1.0 ± 0.0"

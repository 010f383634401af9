"""The figure of `docs/speed.md`: accuracy by what it cost."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import FigureBase

from hacrl.report.drawing import Chart, Panel, line_style, tidy

__all__ = ["draw_race"]

Points = Sequence[Mapping[str, Any]]


def draw_race(found: Mapping[str, Any], file: Path) -> None:
    """Mean held-out accuracy of both agents, against rollouts and against time of both.

    Args:
        found: by `race`.
    """
    file.parent.mkdir(exist_ok=True)
    panels = [
        Panel("by rollouts", partial(_draw, found, "rollouts of both agents", "step")),
        Panel("by time", partial(_draw, found, "processor seconds for both agents", "cpu")),
    ]
    Chart("race", "race", "", panels).save(file)


def _draw(found: Mapping[str, Any], label: str, key: str, figure: FigureBase) -> None:
    axis = figure.subplots()
    hacpo: Points = found["curves"]["hacpo"]
    trl: Mapping[str, Points] = found["curves"]["trl"]
    rollouts = found["rollouts_a_step"] * len(trl) if key == "step" else 1
    axis.plot(
        [point[key] * rollouts for point in hacpo],
        [statistics.mean(point["accuracy"][agent][1] for agent in trl) for point in hacpo],
        label="HACPO, both at once",
        **line_style(0),
    )
    together = list(zip(*trl.values(), strict=True))
    axis.plot(
        [
            points[0][key] * rollouts if key == "step" else sum(point[key] for point in points)
            for points in together
        ],
        [
            statistics.mean(
                point["accuracy"][agent][1] for agent, point in zip(trl, points, strict=True)
            )
            for points in together
        ],
        label="TRL's GSPO, each alone",
        **line_style(1),
    )
    axis.set_xlabel(label)
    axis.set_ylabel("held-out accuracy, mean")
    tidy(axis)

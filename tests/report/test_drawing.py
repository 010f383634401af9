"""Panels become SVG that can stand in a page, and files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import FigureBase

from hacrl.report.drawing import COLOURS, Chart, Panel, draw_stack, line_style


def wave(figure: FigureBase) -> None:
    axis = figure.subplots()
    axis.plot([0, 1], [0, 1], label="<b>$x$ & y")
    axis.legend()


CHART = Chart("wave", "Wave", "A wave.", [Panel("one", wave), Panel("two", wave)])


def test_svg_can_stand_in_a_page() -> None:
    (title, first), (_, second) = CHART.svgs()
    assert title == "one"
    assert first.startswith("<svg ")
    assert first.rstrip().endswith("</svg>")
    assert "&lt;b&gt;$x$ &amp; y" in first, "text, neither markup nor mathematics"
    assert "<metadata" not in first
    ids = [set(re.findall(r' id="([^"]+)"', svg)) for svg in (first, second)]
    assert not ids[0] & ids[1]
    assert set(re.findall(r"url\(#([^)]+)\)", first)) <= ids[0]
    assert CHART.svgs() == CHART.svgs()


def test_svg_files_are_the_same_every_time(tmp_path: Path) -> None:
    files = [tmp_path / name / "wave.svg" for name in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        CHART.save(file)
    first, second = (file.read_bytes() for file in files)
    assert first == second


def test_lines_differ_in_more_than_colour() -> None:
    styles = [line_style(i) for i in range(len(COLOURS))]
    assert len({(style["linestyle"], style["marker"]) for style in styles}) == len(styles)


@pytest.mark.parametrize("steps", [1, 5])
def test_a_stack_is_drawn_step_by_step_and_gaps_stay(steps: int) -> None:
    drawn = []

    def draw(figure: FigureBase) -> None:
        axis = figure.subplots()
        x = np.arange(1.0, steps + 1)
        values = np.where(x == 3, np.nan, 0.25)
        draw_stack(axis, x, [("a", values, "#000000", ""), ("b", values, "#ffffff", "///")])
        drawn.extend(axis.collections)

    Chart("stack", "", "", [Panel("", draw)]).svgs()
    lower, upper = (one.get_paths() for one in drawn)
    assert len(lower) == len(upper) == (1 if steps == 1 else 2)
    low, high = upper[0].vertices[:, 1].min(), upper[0].vertices[:, 1].max()
    assert (low, high) == (0.25, 0.5)
    assert lower[0].vertices[:, 0].min() == 0.5

"""How figures are made by matplotlib: panels, their styles, SVG for the page, files for papers."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, FigureBase
from matplotlib.ticker import MaxNLocator, PercentFormatter

from hacrl.report.series import Values

__all__ = ["COLOURS", "Chart", "Panel", "draw_stack", "line_style", "tidy"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, for colour-blind readers too. Lines also differ in style."""
_DASHES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")

_STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "hatch.linewidth": 0.5,
    "text.parse_math": False,  # names of folders may hold a dollar
    "svg.fonttype": "none",
    "font.family": "sans-serif",
}
_WIDTH, _HEIGHT = 4.4, 2.9


@dataclass(frozen=True)
class Panel:
    """One part of a chart that makes sense alone.

    Args:
        title: says whose it is.
        draw: fills an empty figure, or a part of one.
        height: relative to the usual one.
    """

    title: str
    draw: Callable[[FigureBase], None]
    height: float = 1.0


@dataclass(frozen=True)
class Chart:
    """A figure of the report.

    Args:
        name: of its files and its anchor.
        title: what it is about.
        caption: what it shows and what to look for.
        panels: at least one.
        columns: side by side at most.
    """

    name: str
    title: str
    caption: str
    panels: Sequence[Panel]
    columns: int = 3

    def svgs(self) -> list[tuple[str, str]]:
        """Title and SVG element of each panel. Ids are unique, and the same every time."""
        return [
            (panel.title, _svg(_figure([panel], 1), f"{self.name}-{i}"))
            for i, panel in enumerate(self.panels)
        ]

    def save(self, *files: Path) -> None:
        """Write all panels side by side; the suffix of a file decides its format.

        Raises:
            OSError: a file cannot be written.
        """
        figure = _figure(self.panels, self.columns)
        for file in files:
            salt = {"svg.hashsalt": self.name}
            metadata = {"Date": None} if file.suffix == ".svg" else None
            with mpl.rc_context(_STYLE | salt):
                figure.savefig(file, dpi=200, metadata=metadata)


def line_style(i: int) -> dict[str, Any]:
    """Colour, dashes and marker of the i-th line; the marker is for sparse points."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "linestyle": _DASHES[i % len(_DASHES)],
        "marker": _MARKERS[i % len(_MARKERS)],
        "markersize": 3.5,
    }


def tidy(axis: Axes, *, shares: bool = False, legend: bool = True) -> None:
    """Grid, whole steps on the x axis, and a legend where there is more than one line."""
    axis.grid(alpha=0.3)
    axis.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    if shares:
        axis.set_ylim(0, 1)
        axis.yaxis.set_major_formatter(PercentFormatter(1.0))
    if legend and len(axis.get_legend_handles_labels()[1]) > 0:
        axis.legend(loc="best")


def draw_stack(
    axis: Axes, x: Values, parts: Sequence[tuple[str, Values, str, str]], legend: bool = True
) -> None:
    """Parts on top of each other, constant over each step; a gap stays one.

    Args:
        parts: label, values, colour and hatch of each.
    """
    width = float(np.diff(x).min()) if len(x) > 1 else 1.0
    edges = np.stack([x - width / 2, x + width / 2], axis=1).ravel()
    below = np.zeros(len(x))
    for label, values, colour, hatch in parts:
        above = below + values
        axis.fill_between(
            edges,
            np.repeat(below, 2),
            np.repeat(above, 2),
            facecolor=colour,
            edgecolor="white",
            linewidth=0,
            hatch=hatch,
            label=label,
        )
        below = above
    tidy(axis, legend=False)
    axis.set_ylim(bottom=0)
    axis.margins(x=0.01)
    if legend:
        axis.legend(
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=3,
            handlelength=1.4,
            columnspacing=1,
        )


def _figure(panels: Sequence[Panel], columns: int) -> Figure:
    columns = min(len(panels), columns)
    rows = -(-len(panels) // columns)
    heights = [max(p.height for p in panels[i * columns : (i + 1) * columns]) for i in range(rows)]
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH * columns, _HEIGHT * sum(heights)), layout="constrained")
        FigureCanvasAgg(figure)
        if len(panels) == 1:
            panels[0].draw(figure)
            return figure
        parts = figure.subfigures(rows, columns, squeeze=False, height_ratios=heights)
        for panel, part in zip(panels, parts.ravel(), strict=False):
            part.suptitle(panel.title, fontsize=10)
            panel.draw(part)
    return figure


def _svg(figure: Figure, name: str) -> str:
    """An element to stand in a page: no prologue, no date, ids that begin with the name."""
    text = io.StringIO()
    with mpl.rc_context(_STYLE | {"svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    element = text.getvalue()
    element = element[element.index("<svg") :]
    element = re.sub(r"\s*<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    return re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", element)

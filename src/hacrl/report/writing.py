"""From run folders to a page on the disk, and to figures for papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hacrl.errors import UserError
from hacrl.report import BROWSE, PAGE
from hacrl.report.page import Report, make_report, render
from hacrl.report.reading import read_runs
from hacrl.runs.writing import write_text

__all__ = ["write_figures", "write_report"]


def write_report(
    paths: Sequence[Path], *, out: Path | None = None, browse: int = BROWSE
) -> tuple[Report, Path]:
    """Write the page of one or several runs.

    Args:
        out: file; by default `report.html` in the run's folder, for several runs in this one.
        browse: prompts of each run that can be browsed.

    Raises:
        UserError: a folder is not one of a run, or something cannot be read or written.
    """
    report = make_report(read_runs(paths), browse)
    page = out or (paths[0] / PAGE if len(report.runs) == 1 else Path(PAGE))
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        write_text(page, render(report))
    except OSError as error:
        raise UserError(f"{page}: cannot be written ({error.strerror or error})") from error
    return report, page


def write_figures(report: Report, folder: Path) -> int:
    """Write every figure as PNG and SVG. Returns how many.

    Figures of one run among several begin with its label.

    Raises:
        UserError: one cannot be written.
    """
    named = {chart.name: chart for chart in report.charts}
    for detail in report.details:
        prefix = f"{detail.run.label.replace('/', '-')}-" if len(report.details) > 1 else ""
        named |= {f"{prefix}{chart.name}": chart for chart in detail.charts}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, chart in named.items():
            chart.save(folder / f"{name}.png", folder / f"{name}.svg")
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror or error})") from error
    return len(named)

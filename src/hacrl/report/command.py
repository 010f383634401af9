"""`hacrl report`: from run folders to a page and to figures for papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from hacrl.console.terminal import say
from hacrl.errors import UserError
from hacrl.report import BROWSE, PAGE
from hacrl.report.page import Report, make_report, render
from hacrl.report.reading import read_runs
from hacrl.runs.writing import write_text

__all__ = ["run_report", "write_figures", "write_report"]


def run_report(
    paths: Sequence[Path],
    console: Console,
    *,
    out: Path | None = None,
    figures: Path | None = None,
    browse: int = BROWSE,
) -> None:
    """Write the page, and the figures if a folder for them is named, and say where.

    Raises:
        UserError: a folder is not one of a run, or something cannot be read or written.
    """
    report, page = write_report(paths, out=out, browse=browse)
    for run in report.runs:
        for text in run.notes:
            say(console, f"note: {run.label}: {text}")
    say(console, f"report: {page} ({page.stat().st_size / 1e6:.1f} MB)")
    if figures is not None:
        count = write_figures(report, figures)
        say(console, f"figures: {count} in {figures}, each as .png and .svg")


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

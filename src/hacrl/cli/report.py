"""The command `hacrl report`, and the report that other commands end with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hacrl.console.terminal import make_console, say
from hacrl.errors import UserError
from hacrl.report import BROWSE, PAGE

__all__ = ["report", "report_if_possible"]


def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Run folders.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Default: report.html in the run, or here if several."),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also each figure as PNG and SVG.")
    ] = None,
    browse: Annotated[
        int, typer.Option(min=0, metavar="N", help="Prompts of each run to browse.")
    ] = BROWSE,
) -> None:
    """Write an HTML report of one run, or compare several.

    Shows whether every agent improved, who taught whom, what was wasted or unstable, what it cost,
    and a sample of rollouts. One file that needs no network. Runs that differ only by seed are
    drawn as their mean with a 95% interval. Also works while a run is in progress.

    \b
    Examples:
      hacrl report runs/first
      hacrl report runs/gspo-* runs/hacpo-* --out compared.html
      hacrl report runs/first --figures figures --browse 100
    """
    from hacrl.report.writing import write_figures, write_report

    console = make_console()
    content, page = write_report(runs, out=out, browse=browse)
    for run in content.runs:
        for text in run.notes:
            say(console, f"note: {run.label}: {text}")
    say(console, f"report: {page} ({page.stat().st_size / 1e6:.1f} MB)")
    if figures is not None:
        count = write_figures(content, figures)
        say(console, f"figures: {count} in {figures}, each as .png and .svg")


def report_if_possible(runs: Sequence[Path], folder: Path, console: Console) -> None:
    """Write `report.html` into a folder, or say why not: a run is no worse without one."""
    from hacrl.report.writing import write_report

    try:
        _, page = write_report(runs, out=folder / PAGE)
    except (UserError, OSError) as error:
        say(console, f"note: no report: {error}")
    else:
        say(console, f"report: {page}")

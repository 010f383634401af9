"""The command `hacrl runs`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from hacrl.console.terminal import make_console, make_table, say
from hacrl.errors import UserError

if TYPE_CHECKING:
    from hacrl.runs.listing import Listed

__all__ = ["age", "list_runs", "print_runs"]

_QUIET = 600.0
"""Seconds without a write after which a run that says it is running gets a note."""


def list_runs(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder that holds run folders.")
    ] = Path("runs"),
) -> None:
    """List runs: method, state, step, last reward of every agent, and time since the last write.

    The state is what the run itself has recorded: a run that was killed still says running, but
    has not written for long.

    \b
    Examples:
      hacrl runs
      hacrl runs tries
    """
    from hacrl.runs.listing import find_runs

    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder; name the one that holds run folders")
    runs = list(find_runs(folder))
    if not runs:
        raise UserError(
            f"{folder}: holds no runs; start one with hacrl train RECIPE --runs {folder}"
        )
    print_runs(runs, time.time(), make_console())


def print_runs(runs: Sequence[Listed], now: float, console: Console) -> None:
    """Print a table of runs, the latest last.

    Args:
        now: seconds since the epoch.
    """
    runs = sorted(runs, key=lambda run: (run.written, run.name))
    table = make_table(console, gap=1)
    table.add_column("run", overflow="fold", ratio=1)
    for name in ("method", "state"):
        table.add_column(name, no_wrap=True)
    table.add_column("step", justify="right", no_wrap=True)
    table.add_column("last reward", overflow="fold")
    table.add_column("last write", justify="right", no_wrap=True)
    for run in runs:
        table.add_row(
            Text(run.name),
            run.method,
            run.state,
            f"{run.done}/{'?' if run.steps is None else run.steps}",
            Text(" ".join(f"{name} {_number(value)}" for name, value in run.rewards.items())),
            f"{age(now - run.written)} ago",
        )
    console.print(table)
    quiet = [run.name for run in runs if run.state == "running" and now - run.written > _QUIET]
    if quiet:
        say(
            console,
            f"note: {', '.join(quiet)}: not finished, and nothing written for over "
            f"{age(_QUIET)}; either a step takes that long or the run has died",
        )


def age(seconds: float) -> str:
    """A span of time in its largest unit, such as `45s`, `12m`, `3h`, `8d`."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"

"""The command `hacrl demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hacrl.cli.arguments import RunsOption
from hacrl.cli.report import report_if_possible
from hacrl.console.terminal import make_console, quieten_libraries

__all__ = ["demo"]


def demo(
    runs: RunsOption = Path("runs"),
    seed: Annotated[int, typer.Option("--seed", min=0, help="Determines the whole demo.")] = 0,
) -> None:
    """Watch two tiny models learn from each other.

    Trains them with HACPO and, each alone, with GSPO from the same weights, then prints a table
    and the paths of the results. Takes a few minutes on two CPU cores and needs no network.

    \b
    Examples:
      hacrl demo
      hacrl demo --seed 3 --runs tries
    """
    quieten_libraries()
    from hacrl.demo.run import run_demo

    console = make_console()
    folders = run_demo(runs, seed, console)
    report_if_possible(folders, runs / "demo", console)

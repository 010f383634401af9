"""The paper's experiments at the size of a laptop.

python -m studies                 # what is missing of all stages, in their order
python -m studies --smoke         # the same with runs of two steps and one seed, in minutes
python -m studies --only report   # tables and figures of the runs that are there
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hacrl.config import Recipe
from hacrl.console.terminal import say
from studies.grid import GRID, Cell, Grid
from studies.models import make_models
from studies.report import write_report
from studies.running import run_all
from studies.tuning import read_rates, write_search

WORK = Path("studies/work")
RESULTS = Path("studies/results")
PAGES = Path("docs/results")
SMOKE = ("steps=2", "prompts_per_step=4", "evaluation.limit=4", "evaluation.every=1")


class Stage(StrEnum):
    """A stage of the study; each needs those before it."""

    MODELS = "models"
    TUNE = "tune"
    RUN = "run"
    REPORT = "report"


def main(
    only: Annotated[list[Stage] | None, typer.Option(help="do this stage only; repeatable")] = None,
    smoke: Annotated[bool, typer.Option(help="runs of two steps and one seed")] = False,
    jobs: Annotated[int, typer.Option(help="processes of one thread; 0: as many as cores")] = 0,
    grid_file: Annotated[Path, typer.Option("--grid", help="another grid")] = GRID,
) -> None:
    """Do what is missing of the study, then write its tables and figures."""
    console = Console()
    stages = only or list(Stage)
    jobs = jobs or os.cpu_count() or 1
    grid = Grid.load(grid_file)
    runs, results, pages = WORK / "runs", RESULTS, PAGES
    if smoke:
        grid, runs = grid.smaller(SMOKE), WORK / "smoke"
        results = pages = WORK / "smoke-results"
    search = results / "search.csv"
    if Stage.MODELS in stages:
        make_models(WORK / "models", jobs)
    if Stage.TUNE in stages:
        cells = grid.tuning_cells()
        say(console, "the search for learning rates")
        run_all(_recipes(grid, cells), runs, jobs, console)
        write_search(cells, runs, search)
        say(console, f"learning rates: {read_rates(search)}; all that was tried is in {search}")
    if Stage.RUN in stages:
        run_all(_recipes(grid, grid.cells(read_rates(search))), runs, jobs, console)
    if Stage.REPORT in stages:
        write_report(grid, grid.cells(read_rates(search)), runs, results, pages, console)


def _recipes(grid: Grid, cells: Sequence[Cell]) -> list[Recipe]:
    """One for every run, as a run can serve several cells."""
    once = {cell.name: cell for cell in cells}.values()
    return [grid.recipe_of(cell, WORK / "models") for cell in once]


if __name__ == "__main__":
    typer.run(main)

"""The results of the study: one table of what was measured, its summaries, its figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console

from hacrl.terminal import say
from studies.comparing import by_setting, final
from studies.figures import draw_figures
from studies.grid import Cell, Grid
from studies.outcomes import evaluations, steps
from studies.tables import ablation_table, against_table, main_table, search_table

__all__ = ["write_report"]

INTRODUCTION = """Written by `make study`; [the results](../results.md) say what they mean.
Accuracies are in percent, differences in percentage points, each with a 95% interval over seeds
(Student's, paired by seed where methods are compared)."""
ABLATIONS = {
    "Capability-aware advantage and discrepancy coefficient": ["no_capability", "no_discrepancy"],
    "Exponential importance sampling (HACPO has α = 1)": ["alpha_0", "alpha_2", "alpha_3"],
    "Clipping": ["no_stepwise", "no_cross_clip"],
    "The other readings of the paper": ["learner_baseline", "own_length", "mixed"],
}


def write_report(
    grid: Grid, cells: Sequence[Cell], runs: Path, results: Path, pages: Path, console: Console
) -> None:
    """Write all results of the runs.

    Args:
        results: gets `results.{parquet,csv}` and `steps.parquet`.
        pages: gets `tables.md` and the figures.
    """
    found, course = evaluations(cells, runs), steps(cells, runs)
    results.mkdir(parents=True, exist_ok=True)
    found.to_parquet(results / "results.parquet", index=False)
    found.to_csv(results / "results.csv", index=False, float_format="%.6g", lineterminator="\n")
    course.to_parquet(results / "steps.parquet", index=False)
    main = by_setting(found[found["part"] == "main"], grid)
    every = by_setting(found, grid)
    last = final(every)
    tables = [
        "# All tables of the study",
        INTRODUCTION,
        "## HACPO against the baselines",
        against_table(final(main), grid, [m for m in grid.main.methods if m != "hacpo"]),
        "## All methods",
        main_table(final(main), found[found["step"] == 0], grid),
        "## Ablations",
    ]
    for title, methods in ABLATIONS.items():
        chosen = [method for method in methods if method in grid.ablations.methods]
        tables += [f"### {title}", ablation_table(last, grid, chosen)]
    tables += [
        "## The search for learning rates",
        search_table(pd.read_csv(results / "search.csv")),
    ]
    pages.mkdir(parents=True, exist_ok=True)
    (pages / "tables.md").write_text("\n\n".join(tables) + "\n", encoding="utf-8")
    draw_figures(
        main,
        by_setting(course[course["part"] == "main"], grid),
        final(main),
        grid,
        pages,
    )
    say(console, f"results are in {results}, tables and figures in {pages}")

"""The results of the study: one table of what was measured, its summaries, its figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console

from hacrl.console.terminal import say
from studies.comparing import by_setting, final
from studies.figures import draw_figures, draw_rates
from studies.grid import ABLATIONS, MAIN, Cell, Grid
from studies.outcomes import evaluations, steps
from studies.tables import (
    ablation_table,
    against_table,
    course_table,
    main_table,
    question_table,
    search_table,
    sets_table,
)

__all__ = ["write_report"]

INTRODUCTION = """Written by `make study`; [the results](../results.md) say what they mean.
Accuracies are in percent, differences in percentage points, each with a 95% interval over seeds
(Student's, paired by seed where methods are compared)."""
VARIANTS = {
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
    for folder in (results, pages):
        folder.mkdir(parents=True, exist_ok=True)
    found.to_parquet(results / "results.parquet", index=False)
    found.to_csv(results / "results.csv", index=False, float_format="%.6g", lineterminator="\n")
    course.to_parquet(results / "steps.parquet", index=False)
    main = by_setting(found[found["part"] == MAIN], grid.main_settings)
    last = final(main)
    others = [method for method in grid.main.methods if method != "hacpo"]
    tables = [
        "# All tables of the study",
        INTRODUCTION,
        "## HACPO against the baselines",
        against_table(last, grid, others),
        sets_table(last, others),
        "## All methods",
        course_table(main, grid.main.methods),
        main_table(last, found[found["step"] == 0], grid),
        "## Ablations",
    ]
    varied = final(found[found["part"].isin([MAIN, ABLATIONS])])
    for title, methods in VARIANTS.items():
        chosen = [method for method in methods if method in grid.ablations.methods]
        tables += [f"### {title}", ablation_table(varied, grid, chosen)]
    for name, question in grid.questions.items():
        settings = {setting: grid.settings[setting] for setting in question.settings}
        asked = by_setting(found[found["part"] == name], settings)
        own = final(asked)
        tables += [f"## {question.title}", question_table(own, question, grid)]
        if len(question.learning_rates) > 1:
            draw_rates(own, question.methods, name, pages)
        else:
            tables.append(course_table(asked, question.methods))
    tables += [
        "## The search for learning rates",
        search_table(pd.read_csv(results / "search.csv")),
    ]
    (pages / "tables.md").write_text("\n\n".join(tables) + "\n", encoding="utf-8")
    draw_figures(
        main,
        by_setting(course[course["part"] == MAIN], grid.main_settings),
        last,
        grid,
        pages,
    )
    say(console, f"results are in {results}, tables and figures in {pages}")

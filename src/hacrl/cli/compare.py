"""The command `hacrl compare`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hacrl.cli.arguments import EvaluationsOption, split_names
from hacrl.console.terminal import make_console, make_table, quieten_libraries, say

if TYPE_CHECKING:
    from hacrl.evaluation.compare import Comparison

__all__ = ["compare"]


def compare(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET",
            help="Two or more, as for hacrl eval; the first is the baseline.",
            show_default=False,
        ),
    ],
    bench: Annotated[
        str,
        typer.Option(metavar="NAMES", help="Only these benchmarks; default: all that are stored."),
    ] = "",
    out: EvaluationsOption = Path("evaluations"),
) -> None:
    """Compare agents on the problems that both have answered.

    Takes the responses that hacrl eval has stored, or those of the last evaluation in training.
    Agents of the same name in two runs are paired; otherwise all are compared with the first.
    Shows the difference with a paired bootstrap interval, and how many problems were gained and
    lost.

    \b
    Examples:
      hacrl compare runs/gspo runs/hacpo
      hacrl compare models/before runs/first/agents/kim --bench gsm8k
    """
    quieten_libraries()
    from hacrl.evaluation.compare import compare as compare_targets
    from hacrl.runs.writing import write_text

    console = make_console()
    comparisons = compare_targets(targets, out, split_names(bench))
    console.print(_table(comparisons, console))
    say(
        console,
        "Differences on the same problems; intervals are 95%, paired bootstrap over problems.",
    )
    if out.is_dir():
        text = json.dumps([asdict(comparison) for comparison in comparisons], indent=2) + "\n"
        write_text(out / "comparison.json", text)


def _table(comparisons: Sequence[Comparison], console: Console) -> Table:
    table = make_table(console)
    for name in ("agent", "compared with", "benchmark"):
        table.add_column(name, overflow="fold")
    for name in ("problems", "metric", "before", "after", "difference", "95% interval"):
        table.add_column(name, justify="right")
    for name in ("gained", "lost"):
        table.add_column(name, justify="right")
    for comparison in comparisons:
        table.add_row(
            Text(comparison.agent),
            Text(comparison.baseline),
            comparison.benchmark,
            f"{comparison.problems:,}",
            comparison.metric,
            f"{comparison.before:.3f}",
            f"{comparison.after:.3f}",
            f"{comparison.difference:+.3f}",
            f"{comparison.low:+.3f} to {comparison.high:+.3f}",
            str(comparison.gained),
            str(comparison.lost),
        )
    return table

"""What comes out of an evaluation: a table, and the same as JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hacrl.console.terminal import make_table, say
from hacrl.errors import UserError
from hacrl.evaluation.answers import Scores, scores
from hacrl.evaluation.estimators import Estimate, mean_of_estimates
from hacrl.evaluation.runner import Result
from hacrl.runs.writing import write_text

__all__ = ["STATISTICS", "print_failures", "report", "results_table"]

STATISTICS = (
    "Intervals are 95%: Wilson's where every problem counts 0 or 1, else normal over problem means;"
    " an average combines those of its parts."
)
_HEAD = ("agent", "benchmark", "problems", "metric", "value", "95% interval")
_SHARES = ("truncated", "no answer", "tokens")
_IN_FILES_ONLY = ("pass@", "tokens")
"""Columns that are too many for a terminal."""
_MANY = 0.3
_SHOWN = 300
"""Characters of a text that a failure shows; of a response the last, where the answer stands."""


def report(results: Sequence[Result], folder: Path, console: Console) -> None:
    """Print the table and write `results.json`, `results.csv` and `results.md` into the folder.

    Raises:
        UserError: nothing could be scored, or a file cannot be written.
    """
    scored = [(result, scores(result.answers, result.job.settings.headline)) for result in results]
    whole = [(result, score) for result, score in scored if score is not None]
    for result, score in scored:
        if score is None:
            text = f"{result.target.label} {result.job.name}: none of its responses could be scored"
            say(console, f"note: {text}")
    if not whole:
        raise UserError(
            "no response could be scored; `hacrl verify` shows what the verifier cannot judge"
        )
    rows = [_row(result, score) for result, score in whole] + _averages(whole)
    console.print(results_table(rows, console))
    for line in (*_remarks(whole), STATISTICS):
        say(console, line)
    texts = {
        "results.json": json.dumps(rows, indent=2, allow_nan=False) + "\n",
        "results.csv": _csv(rows),
        "results.md": _markdown(rows),
    }
    for name, text in texts.items():
        try:
            write_text(folder / name, text)
        except OSError as error:
            raise UserError(f"{folder / name}: cannot be written ({error.strerror})") from error


def results_table(rows: Sequence[Mapping[str, Any]], console: Console) -> Table:
    """The rows as a table for people: lines on a terminal, columns of text elsewhere."""
    table = make_table(console, gap=1)
    head, cells = _cells(rows)
    shown = [i for i, name in enumerate(head) if not name.startswith(_IN_FILES_ONLY)]
    for i in shown:
        left = head[i] in _HEAD[:2]
        table.add_column(
            head[i], justify="left" if left else "right", overflow="fold", no_wrap=not left
        )
    for row in cells:
        table.add_row(*(Text(row[i]) for i in shown))
    return table


def print_failures(results: Sequence[Result], count: int, console: Console) -> None:
    """Show responses that are not right, up to `count` of each agent and benchmark."""
    for result in results:
        failures = [answer for answer in result.answers if not answer.right]
        for answer in failures[:count]:
            end = "" if answer.finished else ", cut at the length limit"
            lines = (
                f"\n--- {result.target.label}, {answer.problem}, response {answer.sample}: "
                f"{answer.outcome.replace('_', ' ')}{end}",
                f"problem:   {_shown(answer.prompt, end=False)}",
                f"reference: {_shown(answer.gold)}",
                f"answer:    {'-' if answer.answer is None else _shown(answer.answer)}",
                f"response:  {_shown(answer.response)}",
            )
            for line in lines:
                say(console, line)


def _row(result: Result, score: Scores) -> dict[str, Any]:
    """One agent and benchmark. The names are part of the interface; docs/evaluation.md has them."""
    settings = result.job.settings
    several = score.samples > 1
    return {
        "agent": result.target.label,
        "benchmark": result.job.name,
        "problems": score.problems,
        "samples": score.samples,
        "metric": score.metric,
        **_figures(score.main),
        **({f"avg@{score.samples}": score.average.value} if several else {}),
        **({f"pass@{j}": value.value for j, value in score.pass_at.items()} if several else {}),
        **({f"best@{score.samples}": score.best.value} if several else {}),
        **({f"maj@{score.samples}": score.majority.value} if several else {}),
        "truncated": score.truncated,
        "no_answer": score.no_answer,
        "tokens": score.tokens,
        "unscored": score.unscored,
        "too_long": score.too_long,
        "outcomes": dict(score.outcomes),
        "greedy": settings.greedy,
        "temperature": None if settings.greedy else settings.temperature,
        "max_new_tokens": settings.max_new_tokens,
    }


def _averages(scored: Sequence[tuple[Result, Scores]]) -> list[dict[str, Any]]:
    """The unweighted mean over the benchmarks, per agent, where there are several."""
    by_agent: dict[str, list[Scores]] = {}
    for result, score in scored:
        by_agent.setdefault(result.target.label, []).append(score)
    return [
        {
            "agent": agent,
            "benchmark": "average",
            "problems": sum(score.problems for score in own),
            "metric": f"mean of {len(own)}",
            **_figures(mean_of_estimates([score.main for score in own])),
        }
        for agent, own in by_agent.items()
        if len(own) > 1
    ]


def _figures(estimate: Estimate) -> dict[str, Any]:
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "interval": estimate.method,
    }


def _remarks(scored: Sequence[tuple[Result, Scores]]) -> list[str]:
    lines = []
    for result, score in scored:
        place = f"{result.target.label} {result.job.name}"
        if score.no_answer > _MANY:
            lines.append(
                f"note: {place}: {score.no_answer:.0%} of the responses have no answer in the "
                "expected format; the score measures the format as well (--show-failures 5)"
            )
        if score.unscored:
            lines.append(
                f"note: {place}: {score.unscored} responses could not be scored and are left out"
            )
        if score.too_long:
            lines.append(
                f"note: {place}: {score.too_long} problems were too long and count as wrong"
            )
    return lines


def _cells(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Head and cells of the table that people read."""
    further = dict.fromkeys(name for row in rows for name in row if "@" in name)
    head = [*_HEAD, *further, *_SHARES]
    cells = [
        [
            row["agent"],
            row["benchmark"],
            f"{row['problems']:,}",
            row["metric"],
            f"{row['value']:.3f}",
            f"{row['low']:.3f}-{row['high']:.3f}",
            *(f"{row[name]:.3f}" if name in row else "" for name in further),
            *(f"{row[name]:.1%}" if name in row else "" for name in ("truncated", "no_answer")),
            f"{row['tokens']:.0f}" if "tokens" in row else "",
        ]
        for row in rows
    ]
    return head, cells


def _markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    head, cells = _cells(rows)
    rule = ["---" if name in _HEAD[:2] else "---:" for name in head]
    lines = [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |"
        for line in (head, rule, *cells)
    ]
    return "\n".join([*lines, "", STATISTICS, ""])


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row if name != "outcomes"))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _shown(text: str, *, end: bool = True) -> str:
    """A text from outside on one line of a terminal: its end, or its beginning."""
    line = " ".join(text.split())
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    if len(line) <= _SHOWN:
        return line
    return f"…{line[1 - _SHOWN :]}" if end else f"{line[: _SHOWN - 1]}…"

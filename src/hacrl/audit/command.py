"""`hacrl verify`, as a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hacrl.audit.counting import Findings
from hacrl.audit.report import print_findings, print_outcomes
from hacrl.audit.running import (
    Tell,
    audit_responses,
    audit_tries,
    open_pool,
    score_golds,
    tests_alone,
)
from hacrl.audit.writing import write_verdicts
from hacrl.config.schema import Verification
from hacrl.config.tasks import Task
from hacrl.console.terminal import is_live, say
from hacrl.errors import UserError

__all__ = ["find", "run_audit"]


def run_audit(
    tasks: Mapping[str, Task],
    rule: Verification,
    console: Console,
    *,
    responses: Path | None,
    field: str,
    rows: int,
    examples: int,
    out: Path | None,
) -> bool:
    """Score, print the report, write the verdicts.

    Args:
        responses: a file of responses to score; None audits the golds.
        rows: golds of each task that are tried in other forms at most.

    Returns:
        Whether the audit of golds found nothing amiss; true for responses.

    Raises:
        UserError: a source or the file of responses cannot be read, or `out` cannot be written.
    """
    if out is not None and not out.parent.is_dir():
        raise UserError(f"--out {out}: there is no folder {out.parent}")
    with _progress(console) as telling:
        if responses is None:
            findings = find(tasks, rule, rows, telling)
            scored = [row for row in findings.golds if row.prompt.id not in findings.tests]
        else:
            scored = audit_responses(tasks, rule, responses, field, telling("responses"))
    print_outcomes(scored, tasks, examples, console)
    if responses is None:
        if findings.tests:
            say(console, f"\n{len(findings.tests):,} golds are tests that no solution comes with")
        print_findings(findings, tasks, examples, console)
    if out is not None:
        write_verdicts(scored, out, () if responses is not None else findings.tried)
        say(console, f"\nevery verdict is in {out}")
    return responses is not None or findings.none


def find(
    tasks: Mapping[str, Task], rule: Verification, rows: int, telling: Callable[[str], Tell]
) -> Findings:
    """Audit the golds of tasks.

    Args:
        rows: golds of each task that are tried in other forms at most; 0: none.
        telling: makes what is told of the progress of a part of the work.

    Raises:
        UserError: a source cannot be read.
    """
    with open_pool(tasks, rule) as pool:
        golds = score_golds(pool, tasks, telling("golds"))
        tried, unjudged = audit_tries(pool, tasks, golds, rows, telling("tries"))
    tests = (row.prompt.id for row in golds if tests_alone(row, tasks[row.prompt.task]))
    return Findings(golds, tried, unjudged, frozenset(tests))


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[str], Tell]]:
    """A bar for each part of the work, on a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bar = Progress(*columns, TimeRemainingColumn(), console=console)
    bar.disable = not is_live(console)

    def telling(part: str) -> Tell:
        task = bar.add_task(part, total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return tell

    with bar:
        yield telling

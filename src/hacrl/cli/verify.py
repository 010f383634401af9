"""The command `hacrl verify`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hacrl.cli.arguments import (
    RECIPE_HELP,
    DataOption,
    OverridesArgument,
    read_recipe,
    split_names,
)
from hacrl.config.rollouts import Verification
from hacrl.config.tasks import Task
from hacrl.console.terminal import is_live, make_console, quieten_libraries, say
from hacrl.errors import UserError

if TYPE_CHECKING:
    from hacrl.audit import Tell, Tried

__all__ = ["verify"]


def verify(
    recipe: Annotated[str | None, typer.Argument(metavar="RECIPE", help=RECIPE_HELP)] = None,
    overrides: OverridesArgument = None,
    bench: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Benchmarks instead of a recipe, or all."),
    ] = None,
    data: DataOption = None,
    responses: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Responses: JSON lines, JSON, CSV or Parquet."),
    ] = None,
    field: Annotated[str, typer.Option(help="The field that holds a response.")] = "response",
    rows: Annotated[
        int, typer.Option(min=0, help="Reference answers of each task to vary.")
    ] = 1000,
    examples: Annotated[int, typer.Option(min=0, help="Examples of each kind.")] = 2,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every verdict as a JSON line.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if the audit has findings.")
    ] = False,
) -> None:
    """Score responses with a reward, before training on it.

    Without responses, scores the reference answers of the tasks: as they are, in the forms in which
    models write them, and with changes that make them wrong. A row of responses names its prompt
    in a field prompt_id, as in the rollouts of a run; otherwise the rows are matched to the
    prompts by their order.

    \b
    Examples:
      hacrl verify my.yaml
      hacrl verify my.yaml tasks.math.verifier.last_number=true
      hacrl verify my.yaml --responses answers.jsonl --field text --out x.jsonl
      hacrl verify --bench gsm8k,math500 --data folder --examples 5
      hacrl verify my.yaml --strict --examples 0
    """
    if strict and responses is not None:
        raise UserError("verify: --strict is for reference answers; drop it or --responses")
    tasks, rule = _chosen(recipe, overrides, bench, data)
    if out is not None and not out.parent.is_dir():
        raise UserError(f"--out {out}: there is no folder {out.parent}")
    quieten_libraries()
    from hacrl.audit import audit_responses, audit_tasks
    from hacrl.audit.report import print_findings, print_outcomes
    from hacrl.audit.writing import write_verdicts

    console = make_console()
    tried: Sequence[Tried] = ()
    clean = True
    if responses is not None:
        with _progress(console) as progress:
            scored = audit_responses(tasks, rule, responses, field, progress("responses"))
        print_outcomes(scored, tasks, examples, console)
    else:
        with _progress(console) as progress:
            findings = audit_tasks(tasks, rule, rows, progress)
        scored = [row for row in findings.golds if row.prompt.id not in findings.tests]
        print_outcomes(scored, tasks, examples, console)
        if findings.tests:
            say(console, f"\n{len(findings.tests):,} problems have tests and no solution")
        print_findings(findings, tasks, examples, console)
        tried, clean = findings.tried, findings.none
    if out is not None:
        write_verdicts(scored, out, tried)
        say(console, f"\nevery verdict is in {out}")
    if strict and not clean:
        raise typer.Exit(1)


def _chosen(
    recipe: str | None, overrides: Sequence[str] | None, bench: str | None, data: Path | None
) -> tuple[Mapping[str, Task], Verification]:
    """The tasks of a recipe or of benchmarks, and the limits under which they are judged."""
    if bench is not None:
        if recipe is not None:
            raise UserError("verify: give either a RECIPE or --bench, not both")
        if not (names := split_names(bench)):
            raise UserError("verify: --bench names no benchmark; write --bench gsm8k,math500")
        from hacrl.tasks import benchmark_tasks

        return benchmark_tasks(names, data), Verification()
    if recipe is None:
        raise UserError("verify: name a RECIPE, or benchmarks with --bench gsm8k,math500")
    if data is not None:
        raise UserError("verify: --data needs --bench; a recipe names its own data")
    settings = read_recipe(recipe, overrides)
    return settings.tasks, settings.verification


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[str], Tell]]:
    """A bar for each part of the work, on a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bar = Progress(*columns, TimeRemainingColumn(), console=console)
    bar.disable = not is_live(console)

    def begin(part: str) -> Tell:
        task = bar.add_task(part, total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return tell

    with bar:
        yield begin

"""The commands together, and how errors are shown."""

from __future__ import annotations

import logging
from importlib.metadata import version
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.logging import RichHandler
from typer.core import TyperGroup

from hacrl.cli.check import check
from hacrl.cli.compare import compare
from hacrl.cli.demo import demo
from hacrl.cli.eval import evaluate
from hacrl.cli.export import export
from hacrl.cli.recipes import recipes
from hacrl.cli.report import report
from hacrl.cli.runs import list_runs
from hacrl.cli.train import train
from hacrl.cli.verify import verify
from hacrl.console.terminal import INTERRUPTED
from hacrl.errors import UserError
from hacrl.phases import Interrupted

__all__ = ["app", "main"]

_USER_ERROR = 2


class _Commands(TyperGroup):
    """Turns what a user can cause into a short message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except UserError as error:
            if ctx.params["debug"]:
                raise
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(_USER_ERROR) from error
        except Interrupted as error:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from error
        except KeyboardInterrupt as error:
            if ctx.params["debug"]:
                raise
            typer.echo("stopped at once; nothing more was saved", err=True)
            raise typer.Exit(INTERRUPTED) from error


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # examples are shown as they are written
)


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of errors.")] = False,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=lambda wanted: _version(wanted),
            help="Show the version.",
        ),
    ] = False,
) -> None:
    """Let several different language models learn from each other's verified answers.

    \b
    Examples:
      hacrl demo                        see two tiny models learn, in minutes
      hacrl recipes                     list the bundled recipes
      hacrl check my.yaml               what a recipe would run
      hacrl verify my.yaml              test its reward on the reference answers
      hacrl train my.yaml steps=30      train
      hacrl eval runs/my --bench gsm8k  measure the agents' accuracy
      hacrl export runs/my --to DIR     write one agent as a model folder
      hacrl runs                        list runs and their progress
      hacrl report runs/my              write an HTML report of a run
    """


for _name, _command in (
    ("train", train),
    ("check", check),
    ("verify", verify),
    ("recipes", recipes),
    ("demo", demo),
    ("eval", evaluate),
    ("compare", compare),
    ("export", export),
    ("runs", list_runs),
    ("report", report),
):
    app.command(_name)(_command)


def main() -> None:
    """Entry point of the `hacrl` command."""
    logging.getLogger("hacrl").addHandler(
        RichHandler(console=Console(stderr=True), show_time=False, show_path=False)
    )
    app()


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hacrl {version('hacrl')}")
        raise typer.Exit

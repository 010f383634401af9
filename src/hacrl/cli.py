"""The command line. Thin: each command imports what it needs when it runs."""

from __future__ import annotations

import logging
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from hacrl.config import load_recipe
from hacrl.config.bundled import bundled_recipes, describe, find_recipe
from hacrl.errors import UserError
from hacrl.phases import Interrupted

__all__ = ["app", "main"]

_USER_ERROR = 2
_INTERRUPTED = 130
_PIPE_WIDTH = 120
"""Columns where there is no terminal to ask."""


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
            raise typer.Exit(_INTERRUPTED) from error
        except KeyboardInterrupt as error:
            if ctx.params["debug"]:
                raise
            typer.echo("stopped at once; nothing more was saved", err=True)
            raise typer.Exit(_INTERRUPTED) from error


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # examples are shown as they are written
)

RecipeArgument = Annotated[
    str, typer.Argument(metavar="RECIPE", help="A YAML file, or the name of a bundled recipe.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Changes to the recipe. Values are YAML."),
]
Runs = Annotated[
    Path, typer.Option("--runs", metavar="DIR", help="Folder in which run folders are made.")
]


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
      hacrl demo                        see it work, in minutes
      hacrl recipes                     what comes with the package
      hacrl check my.yaml               what a recipe would run
      hacrl train my.yaml steps=30      train
    """


@app.command()
def train(
    recipe: RecipeArgument,
    overrides: Overrides = None,
    runs: Runs = Path("runs"),
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run of the same name.")
    ] = False,
) -> None:
    """Train the agents of a recipe together.

    The run folder DIR/NAME gets the resolved recipe, the metrics of every step, every verified
    rollout and, at the end, each agent as an ordinary Hugging Face folder. Ctrl-C ends the run
    after the phase in progress and saves the agents as they are; a second one stops at once.

    \b
    Examples:
      hacrl train my.yaml
      hacrl train my.yaml steps=30 optimizer.learning_rate=1e-5 name=short
      hacrl train my.yaml method=gspo name=alone
      hacrl train my.yaml sharing='{kim: [lee]}' --overwrite
    """
    settings = load_recipe(find_recipe(recipe), overrides or ())
    console = _console()
    folder = runs / settings.name
    _say(
        console,
        f"run {settings.name}: {settings.steps} steps, method {settings.method}, "
        f"agents {', '.join(settings.agents)}",
    )
    _quieten_libraries()
    from hacrl import training
    from hacrl.progress import watch

    try:
        with watch(settings.steps, console) as observer:
            training.train(settings, runs, observer, overwrite=overwrite)
    except Interrupted as error:
        _say(console, f"interrupted; the agents as they are have been saved in {folder / 'agents'}")
        raise typer.Exit(_INTERRUPTED) from error
    _say(console, f"finished: {folder}, trained agents in {folder / 'agents'}")


@app.command()
def check(recipe: RecipeArgument, overrides: Overrides = None) -> None:
    """Validate a recipe and print what it would run.

    Loads no weights. Shows the agents with their parameters and memory, who learns from whom, how
    many prompts are short enough for everybody, and how many rollouts, updates and tokens there
    will be.

    \b
    Examples:
      hacrl check my.yaml
      hacrl check my.yaml sampling.group_size=16 prompts.max_tokens=256
    """
    settings = load_recipe(find_recipe(recipe), overrides or ())
    _quieten_libraries()
    from hacrl import check as checking

    checking.check(settings, _console())


@app.command()
def recipes(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Print this recipe.")] = None,
) -> None:
    """List the recipes that come with the package, or print one.

    \b
    Examples:
      hacrl recipes
      hacrl recipes demo > my.yaml
    """
    if name is not None:
        typer.echo(find_recipe(name).read_text(encoding="utf-8"), nl=False)
        return
    table = Table.grid(padding=(0, 3))
    for known, path in bundled_recipes().items():
        table.add_row(known, Text(describe(path)))
    _console().print(table)


@app.command()
def demo(
    runs: Runs = Path("runs"),
    seed: Annotated[int, typer.Option("--seed", min=0, help="Determines the whole demo.")] = 0,
) -> None:
    """Watch two tiny models learn from each other.

    Trains from the same start with HACPO and, each alone, with GSPO, then shows a table and where
    everything is. Takes a few minutes on two CPU cores and needs no network.

    \b
    Examples:
      hacrl demo
      hacrl demo --seed 3 --runs tries
    """
    _quieten_libraries()
    from hacrl.demo.run import run_demo

    run_demo(runs, seed, _console())


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


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)


def _quieten_libraries() -> None:
    """Keep progress bars and remarks of libraries out of ours, in worker processes too.

    They read these variables when they are imported; a user's own settings win.
    """
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # heeded by transformers as well
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

"""The command line. Thin: each command imports what it needs when it runs."""

from __future__ import annotations

import logging
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from hacrl.cli import evaluation, export
from hacrl.cli import runs as listing
from hacrl.config import load_recipe
from hacrl.config.bundled import bundled_recipes, describe, find_recipe
from hacrl.console.terminal import INTERRUPTED, make_console, quieten_libraries, say
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
      hacrl verify my.yaml              what its reward makes of its own golds
      hacrl train my.yaml steps=30      train
      hacrl eval runs/my --bench gsm8k  how good the agents are
      hacrl export runs/my --to DIR     one agent as a model of its own
      hacrl runs                        what there is, and how far it is
      hacrl report runs/my              the run's story as a page
    """


@app.command()
def train(
    recipe: RecipeArgument,
    overrides: Overrides = None,
    runs: Runs = Path("runs"),
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run of the same name.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on from the newest checkpoint, or begin if none."),
    ] = False,
    accept_changes: Annotated[
        bool,
        typer.Option(
            "--accept-changes", help="Resume although recipe or data differ from the checkpoint."
        ),
    ] = False,
    fleet: Annotated[
        Literal["local", "ray"] | None,
        typer.Option("--fleet", help="Where the agents live: short for fleet.type=…"),
    ] = None,
) -> None:
    """Train the agents of a recipe together.

    The run folder DIR/NAME gets the resolved recipe, the metrics of every step, every verified
    rollout, checkpoints and, at the end, each agent as an ordinary Hugging Face folder. Ctrl-C ends
    the run after the phase in progress and saves the agents as they are; a second one stops at
    once. However a run ended, --resume continues it as if nothing had happened.

    \b
    Examples:
      hacrl train my.yaml
      hacrl train my.yaml --resume
      hacrl train my.yaml steps=200 --resume
      hacrl train my.yaml steps=30 optimizer.learning_rate=1e-5 name=short
      hacrl train my.yaml method=gspo name=alone
      hacrl train my.yaml sharing='{kim: [lee]}' --overwrite
      hacrl train my.yaml --fleet ray
    """
    if overwrite and resume:
        raise UserError("train: --overwrite and --resume contradict each other; give one")
    if accept_changes and not resume:
        raise UserError("train: --accept-changes is about --resume; give both")
    changes = [*(overrides or ()), *([f"fleet.type={fleet}"] if fleet else [])]
    settings = load_recipe(find_recipe(recipe), changes)
    console = make_console()
    folder = runs / settings.name
    say(
        console,
        f"run {settings.name}: {settings.steps} steps, method {settings.method_name}, "
        f"agents {', '.join(settings.agents)}",
    )
    quieten_libraries()
    from hacrl.console.progress import watch
    from hacrl.training import train as training

    try:
        with watch(settings.steps, console) as observer:
            training.train(
                settings,
                runs,
                observer,
                overwrite=overwrite,
                resume=resume,
                accept_changes=accept_changes,
            )
    except Interrupted as error:
        say(
            console,
            f"interrupted; the agents as they are have been saved in {folder / 'agents'}, "
            "and --resume goes on from here",
        )
        listing.report_if_possible([folder], folder, console)
        raise typer.Exit(INTERRUPTED) from error
    say(console, f"finished: {folder}, trained agents in {folder / 'agents'}")
    listing.report_if_possible([folder], folder, console)


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
    quieten_libraries()
    from hacrl.training import check as checking

    checking.check(settings, make_console())


@app.command()
def verify(
    recipe: Annotated[
        str | None,
        typer.Argument(metavar="RECIPE", help="A YAML file, or the name of a bundled recipe."),
    ] = None,
    overrides: Overrides = None,
    bench: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Benchmarks instead of a recipe, or all."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Local benchmarks: DIR/NAME/test.jsonl."),
    ] = None,
    responses: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Responses: JSON lines, JSON, CSV or Parquet."),
    ] = None,
    field: Annotated[str, typer.Option(help="The field that holds a response.")] = "response",
    rows: Annotated[
        int, typer.Option(min=0, help="Golds of each task to try in other forms.")
    ] = 1000,
    examples: Annotated[int, typer.Option(min=0, help="Shown of each kind.")] = 2,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every verdict as a JSON line.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if anything is amiss with the golds.")
    ] = False,
) -> None:
    """Show what the reward makes of responses, before training on it.

    Without responses, scores the golds of the tasks: by themselves, in the forms in which models
    write them, and with changes that make them wrong. A row of responses names its prompt in a
    field prompt_id, as in the rollouts of a run; else the rows are taken in the order of the
    prompts.

    \b
    Examples:
      hacrl verify my.yaml
      hacrl verify my.yaml tasks.math.verifier.last_number=true
      hacrl verify my.yaml --responses answers.jsonl --field text --out x.jsonl
      hacrl verify --bench gsm8k,math500 --data folder --examples 5
      hacrl verify my.yaml --strict --examples 0
    """
    from hacrl.config.schema import Verification

    if strict and responses is not None:
        raise UserError("verify: --strict is about golds; it goes without --responses")
    if bench is None:
        if recipe is None:
            raise UserError("verify: name a RECIPE, or benchmarks with --bench gsm8k,math500")
        if data is not None:
            raise UserError(
                "verify: --data holds benchmarks and needs --bench; a recipe has its own"
            )
        settings = load_recipe(find_recipe(recipe), overrides or ())
        tasks, rule = settings.tasks, settings.verification
    else:
        if recipe is not None:
            raise UserError("verify: give either a RECIPE or --bench, not both")
        from hacrl.tasks import benchmark_tasks

        tasks, rule = benchmark_tasks(bench.replace(" ", "").split(","), data), Verification()
    quieten_libraries()
    from hacrl.audit import run_audit

    clean = run_audit(
        tasks,
        rule,
        make_console(),
        responses=responses,
        field=field,
        rows=rows,
        examples=examples,
        out=out,
    )
    if strict and not clean:
        raise typer.Exit(1)


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
    make_console().print(table)


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
    quieten_libraries()
    from hacrl.demo.run import run_demo

    console = make_console()
    folders = run_demo(runs, seed, console)
    listing.report_if_possible(folders, runs / "demo", console)


app.command("eval")(evaluation.evaluate)
app.command()(evaluation.compare)
app.command()(export.export)
app.command("runs")(listing.list_all)
app.command()(listing.report)


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

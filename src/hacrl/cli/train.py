"""The command `hacrl train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from hacrl.cli.arguments import OverridesArgument, RecipeArgument, RunsOption, read_recipe
from hacrl.cli.report import report_if_possible
from hacrl.console.terminal import INTERRUPTED, make_console, quieten_libraries, say
from hacrl.errors import UserError
from hacrl.phases import Interrupted

__all__ = ["train"]


def train(
    recipe: RecipeArgument,
    overrides: OverridesArgument = None,
    runs: RunsOption = Path("runs"),
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run of the same name.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue from the newest checkpoint, or start if none."),
    ] = False,
    accept_changes: Annotated[
        bool,
        typer.Option(
            "--accept-changes", help="Resume although recipe or data differ from the checkpoint."
        ),
    ] = False,
    fleet: Annotated[
        Literal["local", "ray"] | None,
        typer.Option("--fleet", help="Where the agents run; short for fleet.type=…"),
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
        raise UserError("train: --accept-changes needs --resume")
    changes = [*(overrides or ()), *([f"fleet.type={fleet}"] if fleet else [])]
    settings = read_recipe(recipe, changes)
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
            f"interrupted; the agents have been saved in {folder / 'agents'}; "
            "--resume continues from here",
        )
        report_if_possible([folder], folder, console)
        raise typer.Exit(INTERRUPTED) from error
    say(console, f"finished: {folder}, trained agents in {folder / 'agents'}")
    report_if_possible([folder], folder, console)

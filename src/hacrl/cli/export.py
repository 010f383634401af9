"""The command `hacrl export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hacrl.console.terminal import make_console, quieten_libraries, say

__all__ = ["export"]


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    to: Annotated[Path, typer.Option(metavar="DIR", help="Folder to create.")],
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which agent, if the run has several.")
    ] = None,
    merge: Annotated[
        bool, typer.Option("--merge", help="Merge an adapter into its model.")
    ] = False,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="WHICH", help="best, last or a number of steps; default: the end."),
    ] = None,
    push: Annotated[
        str | None, typer.Option(metavar="REPO", help="Upload it to the Hugging Face Hub as well.")
    ] = None,
) -> None:
    """Write one agent as an ordinary Hugging Face folder.

    Weights as safetensors, tokenizer with chat template, generation config, and a model card with
    recipe, results and the peers that it learned from. An agent that trained an adapter is written
    as that adapter, or merged into its model.

    \b
    Examples:
      hacrl export runs/my --agent kim --to kim
      hacrl export runs/my --agent kim --to kim --merge
      hacrl export runs/my --agent kim --to kim-at-40 --checkpoint 40
      hacrl export runs/my --agent kim --to kim --push me/kim
    """
    quieten_libraries()
    from hacrl.runs import export as exporting

    console = make_console()
    source = exporting.find_source(run, agent, checkpoint)
    exporting.export(source, to, merge=merge, note=lambda text: say(console, f"note: {text}"))
    say(console, f"exported: {to}")
    if push is not None:
        say(console, f"uploaded: {exporting.push(to, push)}")

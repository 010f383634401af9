"""Arguments that several commands have, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from hacrl.config import Recipe, load_recipe
from hacrl.config.bundled import find_recipe

__all__ = [
    "RECIPE_HELP",
    "DataOption",
    "EvaluationsOption",
    "OverridesArgument",
    "RecipeArgument",
    "RunsOption",
    "read_recipe",
    "split_names",
]

RECIPE_HELP = "A YAML file, or the name of a bundled recipe."

RecipeArgument = Annotated[str, typer.Argument(metavar="RECIPE", help=RECIPE_HELP)]
OverridesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Changes to the recipe. Values are YAML."),
]
RunsOption = Annotated[
    Path, typer.Option("--runs", metavar="DIR", help="Folder that holds the run folders.")
]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Local benchmarks: DIR/NAME/test.jsonl."),
]
EvaluationsOption = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder for responses and results.")
]


def read_recipe(place: str, overrides: Sequence[str] | None = None) -> Recipe:
    """The recipe of a RECIPE argument with the changes of its KEY=VALUE arguments.

    Raises:
        UserError: it is not found, or is not valid.
    """
    return load_recipe(find_recipe(place), overrides or ())


def split_names(text: str) -> list[str]:
    """The names in a list with commas between them."""
    return [name for name in text.replace(" ", "").split(",") if name]

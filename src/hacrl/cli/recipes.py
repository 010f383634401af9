"""The command `hacrl recipes`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from hacrl.config.bundled import bundled_recipes, describe, find_recipe
from hacrl.console.terminal import make_console

__all__ = ["recipes"]


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

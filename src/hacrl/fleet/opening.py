"""The fleet that a recipe asks for, for the time of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from hacrl.config import Recipe
from hacrl.errors import UserError
from hacrl.fleet.base import Fleet
from hacrl.fleet.local import LocalFleet

__all__ = ["open_fleet"]


@contextmanager
def open_fleet(
    recipe: Recipe, run: Path, note: Callable[[str], None]
) -> Iterator[Callable[[Path | None], Fleet]]:
    """Yields what brings the agents to where a run begins or goes on.

    That takes the folder that `Fleet.checkpoint` wrote, or None for the models of the recipe, and
    may be called again after an agent was lost.

    Args:
        run: its folder.
        note: called with lines worth showing.

    Raises:
        UserError: Ray is not installed, or cannot be reached.
    """
    if recipe.fleet.type == "local":
        with ExitStack() as opened:

            def load(checkpoint: Path | None) -> Fleet:
                fleet = opened.enter_context(closing(LocalFleet.from_recipe(recipe)))
                if checkpoint is not None:
                    fleet.restore(checkpoint)
                return fleet

            yield load
        return
    try:
        from hacrl.fleet.ray import RayFleet
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise UserError('fleet: Ray is not installed; pip install "hacrl[ray]"') from error
    with RayFleet(recipe, run.resolve(), note) as fleet:
        yield fleet.start

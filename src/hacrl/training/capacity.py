"""How many threads and processes a machine can take."""

from __future__ import annotations

import os

from hacrl.config.schema import Recipe
from hacrl.errors import UserError

__all__ = ["check_processes"]

_ALWAYS = 32
_EACH = 4
"""For every processor."""


def check_processes(recipe: Recipe) -> None:
    """Refuse a recipe that would start more threads or processes than this machine can run.

    More than there are processors is allowed, since a run repeats bit for bit with the same number
    of threads alone. The threads of a cluster are those of its nodes.

    Raises:
        UserError: it does.
    """
    processors = os.cpu_count() or 1
    limit = max(_ALWAYS, _EACH * processors)
    numbers = {"verification.workers": recipe.verification.workers}
    if recipe.fleet.type == "local":
        numbers["threads"] = recipe.threads or 1
    for key, number in numbers.items():
        if number > limit:
            raise UserError(
                f"{key}: {number} are too many for this machine, which has {processors} "
                f"processors; ask for {limit} at most"
            )

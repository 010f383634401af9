"""The algorithm of a recipe."""

from __future__ import annotations

from hacrl.algorithm.base import Algorithm
from hacrl.algorithm.making import make_algorithm, make_method, with_rule
from hacrl.config.schema import Recipe
from hacrl.errors import UserError
from hacrl.functions import resolve

__all__ = ["recipe_algorithm"]


def recipe_algorithm(recipe: Recipe) -> Algorithm:
    """A method of this package or the user's rule, with the settings of the recipe's sections.

    Raises:
        UserError: the user's function cannot be found, or fails on a small example.
    """
    sections = {
        "advantage": recipe.advantage.model_dump(),
        "ratio": recipe.ratio.model_dump(),
        "clip": recipe.clip.model_dump(),
    }
    if isinstance(recipe.method, str):
        return make_method(recipe.method, sections)
    name = recipe.method.function
    try:
        rule = resolve(name)
    except UserError as error:
        raise UserError(f"method.function: {error}") from error
    return with_rule(make_algorithm(sections), rule, name)

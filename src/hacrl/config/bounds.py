"""Numbers of a recipe and how large they may be.

The bounds are far beyond any sensible value. They are there so that a typing error, such as a
weight of 1e308, is refused by name and does not end in an overflow or in a division by zero.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from hacrl.errors import UserError

__all__ = [
    "Count",
    "Gibibytes",
    "LearningRate",
    "Processes",
    "Reward",
    "Rows",
    "Seconds",
    "Seed",
    "Temperature",
    "Tokens",
    "Weight",
    "within",
]

_T = TypeVar("_T")

Count = Annotated[int, Field(ge=1, le=10**6)]
Rows = Annotated[int, Field(ge=1, le=10**9)]
"""Also steps and updates."""
Tokens = Annotated[int, Field(ge=1, le=2**24)]
Processes = Annotated[int, Field(ge=1, le=1024)]
"""Also threads and devices."""
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]
"""As NumPy takes them."""
Seconds = Annotated[float, Field(ge=1e-3, le=1e7)]
"""From a millisecond to about 115 days."""
Gibibytes = Annotated[float, Field(ge=0.01, le=2.0**16)]
LearningRate = Annotated[float, Field(ge=1e-15, le=1e3)]
Weight = Annotated[float, Field(ge=1e-9, le=1e9)]
"""Relative to others."""
Reward = Annotated[float, Field(ge=-1e6, le=1e6)]
Temperature = Annotated[float, Field(ge=1e-3, le=100.0)]


def within(bound: Any, value: _T, option: str) -> _T:
    """A value that a command line's option gives instead of a recipe.

    Args:
        bound: a type of this module.

    Raises:
        UserError: it is out of bounds. The message begins with the option.
    """
    try:
        TypeAdapter(Annotated[bound, Field(allow_inf_nan=False)]).validate_python(value)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]["msg"]
        raise UserError(f"{option}: {problem[0].lower()}{problem[1:]}, got {value}") from error
    return value

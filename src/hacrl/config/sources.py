"""Where problems come from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from hacrl.config.strict import Strict

__all__ = ["JsonlSource", "ReasoningGymSource", "Source"]


class JsonlSource(Strict):
    """Problems from a JSON-lines file."""

    type: Literal["jsonl"] = "jsonl"
    path: str
    question: str = "question"
    """Name of the field that holds the problem."""
    answer: str = "answer"
    """Name of the field that holds the gold answer, or a text that ends in it."""


class ReasoningGymSource(Strict):
    """Problems made by a reasoning-gym generator."""

    type: Literal["reasoning_gym"] = "reasoning_gym"
    name: str
    size: PositiveInt = 10_000
    seed: int = 0
    config: dict[str, bool | int | float | str | list[int] | list[float] | list[str]] = Field(
        default_factory=dict
    )
    """The generator's own settings, such as `min_terms`."""


Source = Annotated[JsonlSource | ReasoningGymSource, Field(discriminator="type")]

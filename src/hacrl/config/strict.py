"""What all parts of a recipe have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from hacrl.config.loader import Word

__all__ = ["Free", "FunctionName", "KeyValueError", "Name", "Strict"]

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=100)]
"""Of an agent or a task: it becomes part of file names and of dotted keys."""


class Strict(BaseModel):
    """Refuses unknown keys, does not change, and holds finite numbers only."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _as_it_is_meant(cls, values: Any) -> Any:
        """Refuses true for 1."""
        if not isinstance(values, dict):
            return values
        return {key: _meant(cls, key, value) for key, value in values.items()}


class KeyValueError(ValueError):
    """What is wrong with the value of one key of a section."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(problem)
        self.key = key


def _meant(model: type[BaseModel], key: Any, value: Any) -> Any:
    kinds = _kinds(model, key) if key in model.model_fields else frozenset()
    if isinstance(value, bool) and kinds & {int, float} and bool not in kinds:
        raise KeyValueError(key, f"must be a number, got {str(value).lower()}")
    if isinstance(value, Word) and Literal in kinds:
        return str(value.lower())
    return value


def _of_a_switch(value: Any) -> Any:
    return value.switch if isinstance(value, Word) else value


def _names_a_function(value: str) -> str:
    if not re.fullmatch(r"[^\W\d][\w.]*:[^\W\d][\w.]*", value):
        raise ValueError(f"write it as module:function, got {value!r}")
    return value


FunctionName = Annotated[str, AfterValidator(_names_a_function)]
"""`module:function`, importable from the folder in which a run is started."""

Free = Annotated[bool | int | float | str, BeforeValidator(_of_a_switch)]
"""A value whose type we do not know: unquoted on, off, yes and no are true and false."""


@cache
def _kinds(model: type[BaseModel], key: str) -> frozenset[object]:
    """The types that a key may have; those inside lists and mappings do not count."""
    return frozenset(_members(model.model_fields[key].annotation))


def _members(annotation: Any) -> Iterator[object]:
    origin = get_origin(annotation)
    if origin is Literal:
        yield Literal
    elif origin is None:
        yield annotation
    elif origin not in (list, dict, tuple):
        for part in get_args(annotation):
            yield from _members(part)

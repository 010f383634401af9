"""What is wrong with a recipe, in one line."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from hacrl.config.schema import Recipe
from hacrl.config.text import short

__all__ = ["explain"]


def explain(error: ValidationError) -> str:
    """The first problem in one line, with the nearest known key for an unknown one."""
    errors = error.errors(include_url=False)
    # A misspelt key also leaves the right one missing, so an unknown key is the better news. Of a
    # union's errors, the deepest belongs to the member that was meant.
    first = max(errors, key=lambda e: (e["type"] == "extra_forbidden", len(e["loc"])))
    more = error.error_count() - 1
    path = [str(part) for part in first["loc"] if part != "[key]"]
    key = short(".".join(_without_tags(path)))
    if first["type"] == "extra_forbidden":
        message = f"unknown key {key}{_nearest(path)}"
    elif first["type"] == "missing":
        message = f"missing key {key}"
    elif first["type"] == "value_error":
        detail = str(first["ctx"]["error"])
        message = f"{key}: {detail}" if key else detail
    else:
        wanted = first["msg"][0].lower() + first["msg"][1:]
        message = f"{key}: {wanted}, got {short(repr(first['input']))}"
    return message + (f" (and {more} more)" if more else "")


def _without_tags(path: Sequence[str]) -> list[str]:
    """Drop what pydantic adds to a location: the tag of the chosen member of a union."""
    tags = {"jsonl", "reasoning_gym", "math", "exact", "literal['everyone','nobody']"}
    return [part for part in path if part not in tags and not part.startswith("dict[")]


def _nearest(path: Sequence[str]) -> str:
    known = _fields_at(Recipe, path[:-1])
    close = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known here: {', '.join(sorted(known))}" if known else ""


def _fields_at(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    """Names of the keys that are known at a location of pydantic's error."""
    if not path:
        return list(model.model_fields)
    field = model.model_fields.get(path[0])
    if field is None:
        return []
    models = _models_in(field.annotation)
    rest = path[1:]
    if len(models) > 1 and rest:  # a tagged union: the location names the member
        models = [m for m in models if m.model_fields["type"].default == rest[0]]
        rest = rest[1:]
    elif models and rest and rest[0] not in models[0].model_fields:  # a mapping: skip its key
        rest = rest[1:]
    return _fields_at(models[0], rest) if models else []


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]

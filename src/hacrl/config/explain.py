"""What is wrong with a recipe, in one line."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from hacrl.config.agents import AgentSpec
from hacrl.config.recording import RecordingSpec
from hacrl.config.schema import Recipe
from hacrl.config.strict import KeyValueError
from hacrl.config.text import short

__all__ = ["explain"]

_MEMBERS = ("dict[", "list[", "tuple[", "literal[", "function-")
"""How pydantic begins the name of a union's member that is no model."""

_TAGS: dict[type[BaseModel], str] = {AgentSpec: "model", RecordingSpec: "recording"}
"""Of members of a union whose discriminator is not `type`."""

_LONGEST_REASON = 400

_RENORMALIZING = ("top_p", "top_k", "min_p", "typical_p")
_WHOLE = (
    ": it would sample from another distribution than the one that ratios are computed for; "
    "use sampling.temperature"
)


def explain(error: ValidationError) -> str:
    """The first problem in one line, with the nearest known key for an unknown one."""
    errors = error.errors(include_url=False)
    # A misspelt key also leaves the right one missing, so an unknown key is the better news. Of a
    # union's errors, the deepest belongs to the member that was meant.
    first = max(errors, key=lambda e: (e["type"] == "extra_forbidden", len(e["loc"])))
    more = error.error_count() - 1
    path, known = _follow([str(part) for part in first["loc"] if part != "[key]"])
    key = short(".".join(path))
    if first["type"] == "extra_forbidden":
        renormalizing = path[0] != "evaluation" and path[-1] in _RENORMALIZING
        hint = _WHOLE if renormalizing else _nearest(path[-1], known)
        message = f"unknown key {key}{hint}"
    elif first["type"] == "missing":
        message = f"missing key {key}"
    elif first["type"] == "value_error":
        detail = first["ctx"]["error"]
        if isinstance(detail, KeyValueError):
            key = f"{key}.{detail.key}".removeprefix(".")
        reason = short(str(detail), _LONGEST_REASON)  # it may repeat a value
        message = f"{key}: {reason}" if key else reason
    elif first["type"] == "union_tag_invalid":
        tag, known_tags = repr(first["ctx"]["tag"]), first["ctx"]["expected_tags"]
        message = f"{key}: there is no type {short(tag)}; the types are {known_tags}"
    elif path[-1] == "marker" and first["type"] == "string_pattern_mismatch":
        message = f"{key}: is empty; name a text, or write null for no marker"
    else:
        wanted = short(first["msg"][0].lower() + first["msg"][1:], _LONGEST_REASON)
        message = f"{key}: {wanted}, got {short(repr(first['input']))}"
        if first["type"] == "string_type" and first["input"] is not None:
            message += "; put it into quotes"
    return message + (f" (and {more} more)" if more else "")


def _follow(location: Sequence[str]) -> tuple[list[str], list[str]]:
    """What a location of pydantic's is in the recipe, and the keys that are known around its end.

    A location also names the members of unions that were tried: a tagged model by its tag. They
    are recognized by following the models, since a task may well be called `math`.
    """
    models: list[type[BaseModel]] = [Recipe]
    path: list[str] = []
    known: list[str] = []
    tagged = keyed = False
    for part in location:
        if keyed:  # a task's name, or the number of an item
            path.append(part)
            keyed = False
            continue
        if tagged and (chosen := [model for model in models if _tag(model) == part]):
            models, tagged = chosen, False
            continue
        if part.startswith(_MEMBERS):
            continue
        path.append(part)
        fields = _fields(models[0]) if len(models) == 1 else {}
        known = list(fields)
        annotation = fields[part].annotation if part in fields else None
        models = _models_in(annotation)
        tagged = len(models) > 1
        keyed = get_origin(annotation) in (dict, list)
    return path, known


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """By the names that a recipe has for them."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _tag(model: type[BaseModel]) -> object:
    field = model.model_fields.get("type")
    return field.default if field else _TAGS.get(model)


def _nearest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; the keys here are {', '.join(sorted(known))}" if known else ""


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]

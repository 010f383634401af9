"""From the fields of a row to a problem: the same for every source that has fields."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from string import ascii_uppercase

from hacrl.errors import UserError
from hacrl.tasks.problem import Problem
from hacrl.tasks.rows import Row

__all__ = ["answer_text", "find", "to_problem"]

_FIELD = re.compile(r"\{([^{}]+)\}")
_ABSENT = object()


def to_problem(row: Row, question: str, answer: str) -> Problem:
    """The problem of a row.

    Args:
        question: a field, or a template with `{field}` in it. In a template a field that is null
            is empty, and a list or a mapping of choices becomes lettered lines.
        answer: a field. It may hold a text, a number (27.0 is read as 27), or a list of these,
            which is joined with commas.

    Raises:
        UserError: the row lacks a field, or it holds something else.
    """
    if _FIELD.search(question):
        text = _FIELD.sub(lambda found: _rendered(row, found[1]), question)
    else:
        value = _look_up(row, question, "question")
        text = value if isinstance(value, str) else ""
    if not text.strip():
        raise UserError(f"{row.place}: the field {question!r} must hold the problem as a text")
    gold = answer_text(_look_up(row, answer, "answer"))
    if gold is None:
        raise UserError(
            f"{row.place}: the field {answer!r} must hold a text, a number, or a list of these"
        )
    return Problem(text, gold)


def _look_up(row: Row, name: str, role: str) -> object:
    """A field by its name, or by a dotted path into nested fields such as `prompt.0.content`.

    Raises:
        UserError: there is none; the message lists those that there are.
    """
    value = find(row.fields, name, _ABSENT)
    if value is _ABSENT:
        fields = ", ".join(row.fields) or "none"
        raise UserError(
            f"{row.place}: no field {name!r}; the fields are: {fields}\n"
            f"Set the task's source.{role} to the one that holds the {role}"
        )
    return value


def find(fields: Mapping[str, object], name: str, default: object = None) -> object:
    """A field by its name or dotted path; `default` if there is none."""
    if name in fields:
        return fields[name]
    value: object = fields
    for part in name.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return default
    return value


def _rendered(row: Row, name: str) -> str:
    """A field as text in a template."""
    value = _look_up(row, name, "question")
    if value is None:
        return ""
    if isinstance(value, list) and len(value) <= len(ascii_uppercase):
        value = dict(zip(ascii_uppercase, value, strict=False))
    if isinstance(value, Mapping):
        return "\n".join(f"{letter}. {choice}" for letter, choice in value.items())
    return value if isinstance(value, str) else answer_text(value) or str(value)


def answer_text(value: object) -> str | None:
    """An answer as text; None if it is empty or of another type."""
    match value:
        case bool():
            return None
        case str():
            return value if value.strip() else None
        case int():
            return str(value)
        case float() | Decimal() if math.isfinite(value):
            return str(int(value)) if value == int(value) else str(value)
        case list():
            parts = [answer_text(part) for part in value if not isinstance(part, list)]
            complete = [part for part in parts if part is not None]
            return ", ".join(complete) if complete and len(complete) == len(value) else None
        case _:
            return None

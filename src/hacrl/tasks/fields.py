"""From the fields of a row to a problem: the same for every source that has fields."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from string import ascii_uppercase
from typing import Literal

from hacrl.config.text import short
from hacrl.errors import UserError
from hacrl.tasks.conversation import Conversation, read_conversation
from hacrl.tasks.metadata import read_metadata
from hacrl.tasks.problem import Problem
from hacrl.tasks.rows import Row, check_whole, find

__all__ = ["answer_text", "find", "to_problem"]

_FIELD = re.compile(r"\{([^{}]+)\}")
_ABSENT = object()


def to_problem(
    row: Row,
    question: str,
    answer: str,
    *,
    answers: Literal["all", "any"] | None = None,
    metadata: Sequence[str] | str | None = (),
) -> Problem:
    """The problem of a row.

    Args:
        question: a field that holds a text or a conversation, or a template with `{field}` in it.
            In a template a field that is null is empty, and a list or a mapping of choices becomes
            lettered lines.
        answer: a field. It may hold a text, a number (27.0 is read as 27), or a list of these.
        answers: what a list of several answers means: `all` are parts of one answer and are joined
            with commas, `any` is right by itself. None refuses such a list.
        metadata: see `read_metadata`.

    Raises:
        UserError: the row lacks a field, it holds something else, or a text is none.
    """
    check_whole(row)
    asked: str | Conversation
    if _FIELD.search(question):
        asked = _FIELD.sub(lambda match: _rendered(row, match[1]), question)
        used = _FIELD.findall(question)
    else:
        asked = _asked(row, question)
        used = [question]
    turn = Conversation(None, (), asked) if isinstance(asked, str) else asked
    if not turn.text.strip():
        raise UserError(f"{row.place}: the field {question!r} must hold the problem as a text")
    golds = _golds(row, answer, answers)
    return Problem(
        turn.text,
        golds[0],
        metadata=read_metadata(row, metadata, (*used, answer)),
        alternatives=tuple(golds[1:]),
        system=turn.system,
        history=turn.history,
    )


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


def _asked(row: Row, name: str) -> str | Conversation:
    value = _look_up(row, name, "question")
    if isinstance(value, str):
        return value
    try:
        conversation = read_conversation(value, name)
    except UserError as error:
        raise UserError(f"{row.place}: {error}") from error
    if conversation is None:
        raise UserError(
            f"{row.place}: the field {name!r} must hold the problem as a text, or a conversation; "
            f"it holds {_described(value)}{_deeper(name, value)}"
        )
    return conversation


def _rendered(row: Row, name: str) -> str:
    """A field as text in a template."""
    value = _look_up(row, name, "question")
    if value is None:
        return ""
    choices = value
    if isinstance(value, list) and len(value) <= len(ascii_uppercase):
        choices = dict(zip(ascii_uppercase, value, strict=False))
    if isinstance(choices, Mapping):
        if all(_is_plain(choice) for choice in choices.values()):
            return "\n".join(f"{letter}. {choice}" for letter, choice in choices.items())
    elif _is_plain(value):
        return value if isinstance(value, str) else answer_text(value) or str(value)
    whole = name if isinstance(value, list) and _is_dialogue(value, name) else None
    instead = f"; question: {whole} takes it as a conversation" if whole else _deeper(name, value)
    raise UserError(
        f"{row.place}: {{{name}}} in source.question holds {_described(value)}, which is no text"
        f"{instead}"
    )


def _is_dialogue(value: object, name: str) -> bool:
    try:
        return read_conversation(value, name) is not None
    except UserError:
        return False


def _is_plain(value: object) -> bool:
    return isinstance(value, str | bool | int | float | Decimal | date | time)


def _described(value: object) -> str:
    match value:
        case Mapping():
            return "a mapping"
        case list():
            return "a list"
        case None:
            return "null"
        case bool():
            return f"the boolean {str(value).lower()}"
        case _:
            return f"{type(value).__name__} {short(repr(value))[:40]}"


def _deeper(name: str, value: object) -> str:
    """Where in a field there is a text."""
    path = _path_to_text(name, value)
    return f"; give the path to a text, such as {path}" if path else ""


def _path_to_text(name: str, value: object) -> str | None:
    if isinstance(value, list):
        value = dict(enumerate(value))
    if not isinstance(value, Mapping):
        return None
    preferred = ("content", "text", "value", "ground_truth", "question", "problem", "answer")
    keys = sorted(
        value, key=lambda key: preferred.index(key) if key in preferred else len(preferred)
    )
    for key in keys:
        if isinstance(value[key], str):
            return f"{name}.{key}"
    return next(
        (path for key in keys if (path := _path_to_text(f"{name}.{key}", value[key]))), None
    )


def _golds(row: Row, name: str, answers: Literal["all", "any"] | None) -> list[str]:
    """The reference answer, or all that are right."""
    value = _look_up(row, name, "answer")
    values: list[object] = [value]
    if isinstance(value, list) and len(value) > 1:
        if answers is None:
            raise UserError(
                f"{row.place}: the field {name!r} holds {len(value)} answers\n"
                "Set the task's source.answers to any, if each is right by itself, or to all, if "
                "they are the parts of one answer"
            )
        values = value if answers == "any" else values
    golds = []
    for item in values:
        gold = answer_text(item)
        if gold is None:
            remedy = _deeper(name, item)
            if isinstance(item, bool):
                remedy = '; write it as a text, such as "true" or "Yes"'
            raise UserError(
                f"{row.place}: the field {name!r} must hold a text, a number, or a list of these; "
                f"it holds {_described(item)}{remedy}"
            )
        golds.append(gold)
    return list(dict.fromkeys(golds))


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

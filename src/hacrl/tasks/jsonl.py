"""Problems from JSON-lines files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

from hacrl.config.sources import JsonlSource
from hacrl.errors import UserError
from hacrl.paths import resolve
from hacrl.tasks.problem import Problem

__all__ = ["read_jsonl"]


def read_jsonl(source: JsonlSource) -> list[Problem]:
    """The problems of a file, one JSON object a line.

    Blank lines, a byte-order mark, CRLF and a missing last line end are accepted. An answer may be
    a text, a number (27.0 is read as 27), or a list of these, which is joined with commas.

    Raises:
        UserError: the file cannot be read, a line is not a JSON object, or a row lacks one of the
            fields or has something else than text or numbers in it.
    """
    path = resolve(source.path)
    # Split at line feeds alone: JSON strings may hold other line separators such as U+2028.
    lines = _text(path).split("\n")
    return [
        _problem(line, source, f"{path}, line {number}")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise UserError(
            f"{path}: there is no such file (looked in {Path.cwd()}); check the task's source.path"
        ) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8"
        ) from error


def _problem(line: str, source: JsonlSource, place: str) -> Problem:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{place}: not valid JSON: {error}") from error
    if not isinstance(row, dict):
        raise UserError(f"{place}: expected a JSON object, found {type(row).__name__}")
    question = _field(row, source.question, "question", place)
    if not isinstance(question, str) or not question.strip():
        raise UserError(f"{place}: the field {source.question!r} must hold the problem as a text")
    gold = _answer(_field(row, source.answer, "answer", place))
    if gold is None:
        raise UserError(
            f"{place}: the field {source.answer!r} must hold a text, a number, or a list of these"
        )
    return Problem(question, gold)


def _field(row: Mapping[str, object], name: str, role: str, place: str) -> object:
    if name not in row:
        fields = ", ".join(row) or "none"
        raise UserError(
            f"{place}: no field {name!r}; the fields are: {fields}\n"
            f"Set the task's source.{role} to the one that holds the {role}"
        )
    return row[name]


def _answer(value: object) -> str | None:
    """An answer as text; None if it is empty or of another type."""
    match value:
        case bool():
            return None
        case str():
            return value if value.strip() else None
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return str(int(value)) if value.is_integer() else str(value)
        case list():
            parts = [_answer(part) for part in value if not isinstance(part, list)]
            complete = [part for part in parts if part is not None]
            return ", ".join(complete) if complete and len(complete) == len(value) else None
        case _:
            return None

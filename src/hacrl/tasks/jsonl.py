"""Rows of JSON-lines files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from hacrl.errors import UserError
from hacrl.tasks.rows import Row, read_text

__all__ = ["jsonl_rows"]


def jsonl_rows(path: Path) -> Iterator[Row]:
    """The objects of a file, one a line.

    Blank lines, a byte-order mark, CRLF and a missing last line end are accepted.

    Raises:
        UserError: the file cannot be read, or a line is not a JSON object.
    """
    # Split at line feeds alone: JSON strings may hold other line separators such as U+2028.
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            yield _row(line, f"{path}, line {number}")


def _row(line: str, place: str) -> Row:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{place}: not valid JSON: {error}") from error
    if not isinstance(fields, dict):
        raise UserError(f"{place}: expected a JSON object, found {type(fields).__name__}")
    return Row(place, fields)

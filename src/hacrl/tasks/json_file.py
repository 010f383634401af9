"""Rows of JSON files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hacrl.errors import UserError
from hacrl.tasks.rows import Row, read_text

__all__ = ["json_rows"]


def json_rows(path: Path, key: str | None) -> Iterator[Row]:
    """The objects of a list, in order.

    Args:
        key: where the list stands if the file is one object; dots lead deeper.

    Raises:
        UserError: the file cannot be read, is not JSON, or holds no list of objects there.
    """
    text = read_text(path)
    try:
        content = json.loads(text) if text.strip() else []
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid JSON: {error}") from error
    for part in key.split(".") if key else ():
        if not isinstance(content, dict) or part not in content:
            raise UserError(f"{path}: has no key {key!r}{_keys(content)}")
        content = content[part]
    if not isinstance(content, list):
        remedy = "" if key else "; set the task's source.key to the one that holds a list"
        kind = f"{type(content).__name__}{_keys(content)}"
        raise UserError(f"{path}: expected a list of objects, found {kind}{remedy}")
    for number, fields in enumerate(content, start=1):
        place = f"{path}, row {number}"
        if not isinstance(fields, dict):
            raise UserError(f"{place}: expected an object, found {type(fields).__name__}")
        yield Row(place, fields)


def _keys(content: Any) -> str:
    return f"; its keys are: {', '.join(content) or 'none'}" if isinstance(content, dict) else ""

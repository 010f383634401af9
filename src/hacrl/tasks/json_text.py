"""JSON as data files hold it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from hacrl.errors import UserError

__all__ = ["check_text", "parse_json"]

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""How JSON writes half of a character. Only two halves, one after the other, are a text."""


def parse_json(text: str, place: str) -> Any:
    """The value of a JSON text. `place` begins the error message.

    Raises:
        UserError: it is not valid JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{place}: not valid JSON: {error}") from error


def check_text(value: Any, source: str, place: str) -> None:
    r"""Refuse a value with half of a character in it, such as "\ud83d", which is no text.

    Args:
        source: the JSON that the value came from.
        place: begins the error message.

    Raises:
        UserError: a text, or the name of a field, cannot be encoded.
    """
    if not _HALF.search(source):
        return
    for text in _texts(value):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UserError(
                f"{place}: the text {text[:40]!r} holds half of a character (a lone surrogate); "
                "remove it, or write the data anew as UTF-8"
            ) from error


def _texts(value: Any) -> Iterator[str]:
    left = [value]
    while left:
        match left.pop():
            case str() as text:
                yield text
            case dict() as mapping:
                left += [*mapping, *mapping.values()]
            case list() as items:
                left += items
            case _:
                pass

"""What a verifier gets of a row besides question and answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, time
from decimal import Decimal

from hacrl.errors import UserError
from hacrl.tasks.rows import Row, find

__all__ = ["read_metadata"]


def read_metadata(
    row: Row, wanted: Sequence[str] | str | None, used: Sequence[str]
) -> Mapping[str, object]:
    """The metadata of a row, as values that JSON has.

    Args:
        wanted: fields or dotted paths, which become the names; or the one field that holds a
            mapping, which is taken as it is; None takes every field that is not used otherwise, as
            far as it holds what JSON has.
        used: fields or dotted paths of question and answer.

    Raises:
        UserError: the row lacks a field that is wanted, or it holds what JSON has not.
    """
    if wanted is None:
        taken = {name if name in row.fields else name.split(".")[0] for name in used}
        others = {k: _plain(v) for k, v in row.fields.items() if k not in taken}
        return {key: value for key, value in others.items() if value is not _ODD}
    names = [wanted] if isinstance(wanted, str) else wanted
    metadata = {name: _plain(find(row.fields, name, _ODD)) for name in names}
    for name, value in metadata.items():
        if value is _ODD:
            raise UserError(
                f"{row.place}: source.metadata: there is no field {name!r} with texts or numbers; "
                f"the fields are: {', '.join(row.fields) or 'none'}"
            )
    if not isinstance(wanted, str):
        return metadata
    value = metadata[wanted]
    if not isinstance(value, dict):
        raise UserError(
            f"{row.place}: source.metadata: the field {wanted!r} holds no mapping; to keep it, "
            f"list it, as in metadata: [{wanted}]"
        )
    return value


_ODD = object()
"""Stands for what JSON has not, such as an image."""


def _plain(value: object) -> object:
    """A value as JSON has it, or `_ODD`."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case date() | time():
            return value.isoformat()
        case list() | tuple():
            items = [_plain(item) for item in value]
            return _ODD if any(item is _ODD for item in items) else items
        case Mapping():
            pairs = {str(key): _plain(item) for key, item in value.items()}
            return _ODD if any(item is _ODD for item in pairs.values()) else pairs
        case _:
            return _ODD

"""Local files by format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from hacrl.errors import UserError
from hacrl.tasks.csv_file import csv_rows
from hacrl.tasks.json_file import json_rows
from hacrl.tasks.jsonl import jsonl_rows
from hacrl.tasks.parquet import parquet_rows
from hacrl.tasks.rows import COMPRESSED, Row

__all__ = ["SUFFIXES", "file_rows", "format_of"]

_READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".jsonl": jsonl_rows,
    ".json": lambda path: json_rows(path, None),
    ".csv": lambda path: csv_rows(path, ","),
    ".parquet": parquet_rows,
}
SUFFIXES = tuple(_READERS)


def file_rows(path: Path) -> Iterator[Row]:
    """The rows of a file whose name ends in its format.

    Raises:
        UserError: the name has no known ending, or the file cannot be read.
    """
    suffix = format_of(path)
    if suffix is None:
        raise UserError(f"{path}: the name must end in {', '.join(SUFFIXES)}")
    return _READERS[suffix](path)


def format_of(path: Path) -> str | None:
    """The one of `SUFFIXES` that a name ends in, apart from a compression; None for another."""
    name = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
    suffix = name.suffix.lower()
    return suffix if suffix in _READERS else None

"""Local files by format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from hacrl.errors import UserError
from hacrl.tasks.csv_file import csv_rows
from hacrl.tasks.json_file import json_rows
from hacrl.tasks.jsonl import jsonl_rows
from hacrl.tasks.parquet import parquet_rows
from hacrl.tasks.rows import Row

__all__ = ["SUFFIXES", "file_rows"]

_READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".jsonl": jsonl_rows,
    ".json": lambda path: json_rows(path, None),
    ".csv": lambda path: csv_rows(path, ","),
    ".parquet": parquet_rows,
}
SUFFIXES = tuple(_READERS)


def file_rows(path: Path) -> Iterator[Row]:
    """The rows of a file whose name tells its format.

    Raises:
        UserError: the name tells none, or the file cannot be read.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise UserError(f"{path}: the name must end in {', '.join(SUFFIXES)}")
    return reader(path)

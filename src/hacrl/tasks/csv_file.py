"""Rows of CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from hacrl.errors import UserError
from hacrl.tasks.rows import Row, read_text

__all__ = ["csv_rows"]

_LONGEST_CELL = 10_000_000
"""Characters. The library's own limit of 131,072 is there for files with an unclosed quote."""


def csv_rows(path: Path, delimiter: str) -> Iterator[Row]:
    """The rows below the header, every cell as the text that it is. Blank lines are skipped.

    Raises:
        UserError: the file cannot be read, is malformed, or a row is shorter or longer than the
            header.
    """
    csv.field_size_limit(_LONGEST_CELL)
    # The library wants line ends as they are, since a cell may hold some.
    lines = io.StringIO(read_text(path), newline="")
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header: list[str] | None = None
    while True:
        place = f"{path}, line {reader.line_num + 1}"
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise UserError(f"{place}: not valid CSV: {error}") from error
        if cells is None:
            return
        if not cells:
            continue
        if header is None:
            header = cells
            if len(set(header)) < len(header):
                raise UserError(f"{place}: the header names a field twice: {', '.join(header)}")
            continue
        if len(cells) != len(header):
            raise UserError(
                f"{place}: has {len(cells)} cells where the header has {len(header)}; "
                "quote cells that hold the delimiter, or set source.delimiter"
            )
        yield Row(place, dict(zip(header, cells, strict=True)))

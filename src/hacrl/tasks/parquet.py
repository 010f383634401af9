"""Rows of Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hacrl.config.text import short
from hacrl.errors import UserError
from hacrl.tasks.rows import Row, check_file

__all__ = ["parquet_rows"]


def parquet_rows(path: Path) -> Iterator[Row]:
    """The rows of a file, nested columns included.

    Raises:
        UserError: the file cannot be read.
    """
    from pyarrow import ArrowException, parquet  # slow to import

    check_file(path)
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches():
                for fields in batch.to_pylist():
                    number += 1
                    yield Row(f"{path}, row {number}", fields)
    except (ArrowException, OSError, ValueError) as error:  # text that is not UTF-8, strange dates
        raise UserError(
            f"{path}: not a readable Parquet file, after row {number}: {short(str(error))}"
        ) from error

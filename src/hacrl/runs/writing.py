"""Files that appear whole or not at all, and files that grow by lines."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from safetensors import SafetensorError

from hacrl.errors import UserError, first_line

__all__ = [
    "append_lines",
    "explain_disk",
    "read_lines",
    "sync",
    "why_not_written",
    "write_parquet",
    "write_text",
    "write_whole",
]


@contextmanager
def explain_disk(folder: Path, then: str = "continue with --resume") -> Iterator[None]:
    """Say what happened when the block cannot write to a folder.

    Args:
        then: what to do once the disk takes more.

    Raises:
        UserError: in place of what the system or safetensors raise.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise UserError(
            f"{folder}: cannot be written ({why_not_written(error)}); fix the cause, "
            f"such as a full disk, and {then}"
        ) from error


def why_not_written(error: OSError | SafetensorError) -> str:
    """What the system, or safetensors, says of a file that could not be written."""
    return getattr(error, "strerror", None) or first_line(error)


def sync(path: Path) -> None:
    """Have the contents of a file, or the entries of a folder, on the disk itself."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def append_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append one JSON object a line. Not-a-number is no JSON and is refused."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row, allow_nan=False) + "\n" for row in rows)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects that `append_lines` wrote, as far as they are whole; none without the file."""
    if not path.is_file():
        return []
    whole, _, _ = path.read_text("utf-8").rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write aside and rename, so that a reader never sees half a file."""
    part = path.with_name(path.name + ".part")
    try:
        write(part)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    os.replace(part, path)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole."""
    write_whole(path, lambda part: part.write_text(text, "utf-8"))


def write_parquet(path: Path, table: Any) -> None:
    """Write an Arrow table whole."""
    write_whole(path, lambda part: pq.write_table(table, part, compression="zstd"))

"""What every reader of a source yields, and how text files are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from hacrl.errors import UserError

__all__ = ["Row", "check_file", "read_text"]


class Row(NamedTuple):
    """One row of a source. `place` says where it stands, for error messages."""

    place: str
    fields: Mapping[str, object]


def check_file(path: Path) -> None:
    """Say early and in our words what opening a file would.

    Raises:
        UserError: there is no file of this name.
    """
    if path.is_dir():
        raise UserError(f"{path}: cannot be read: is a folder; give a file")
    if not path.exists():
        raise UserError(f"{path}: there is no such file (looked in {Path.cwd()})")


def read_text(path: Path) -> str:
    """A UTF-8 file as text, without its byte-order mark.

    Raises:
        UserError: it cannot be read, or is not UTF-8.
    """
    check_file(path)
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8"
        ) from error

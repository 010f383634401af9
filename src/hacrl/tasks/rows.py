"""What every reader of a source yields, and how text files are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from hacrl.config.text import short
from hacrl.errors import UserError

__all__ = ["COMPRESSED", "Row", "check_file", "check_whole", "find", "read_text"]

COMPRESSED = (".gz", ".bz2", ".zst")
"""Ends of names of compressed files. What such a file is, its first bytes say."""
_CODECS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
_OTHERS = {
    b"PK\x03\x04": "a ZIP archive",
    b"\xfd7zXZ\x00": "compressed with xz",
    b"7z\xbc\xaf": "a 7z archive",
    b"PAR1": "a Parquet file",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


class Row(NamedTuple):
    """One row of a source. `place` says where it stands, for error messages."""

    place: str
    fields: Mapping[str, object]


def find(fields: Mapping[str, object], name: str, default: object = None) -> object:
    """A field by its name or dotted path; `default` if there is none."""
    if name in fields:
        return fields[name]
    value: object = fields
    for part in name.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return default
    return value


def check_whole(row: Row) -> None:
    r"""Refuse a row with half of a character in it, such as JSON's "\ud83d", which is no text.

    Raises:
        UserError: a text, or the name of a field, cannot be encoded.
    """
    left: list[object] = [row.fields]
    while left:
        match left.pop():
            case str() as text:
                try:
                    text.encode()
                except UnicodeEncodeError as error:
                    raise UserError(
                        f"{row.place}: the text {text[:40]!r} holds half of a character (a lone "
                        "surrogate); remove it, or write the data anew as UTF-8"
                    ) from error
            case Mapping() as mapping:
                left += [*mapping, *mapping.values()]
            case list() as items:
                left += items
            case _:
                pass


def check_file(path: Path) -> None:
    """Say early and in our words what opening a file would.

    Raises:
        UserError: there is no file of this name, or there can be none.
    """
    try:
        if path.is_dir():
            raise UserError(f"{path}: cannot be read: is a folder; give a file")
        if not path.exists():
            raise UserError(f"{path}: there is no such file (looked in {Path.cwd()})")
    except OSError as error:
        raise UserError(f"{short(str(path))}: cannot be read: {error.strerror}") from error


def read_text(path: Path) -> str:
    """A UTF-8 file as text, without its byte-order mark; unpacked if it is compressed.

    Raises:
        UserError: it cannot be read, or is not UTF-8.
    """
    check_file(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    for start, codec in _CODECS.items():
        if content.startswith(start):
            content = _unpacked(path, content, codec)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        for start, kind in _OTHERS.items():
            if content.startswith(start):
                raise UserError(
                    f"{path}: is {kind}; give a UTF-8 text, which may be compressed "
                    f"({', '.join(COMPRESSED)})"
                ) from error
        raise UserError(
            f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8"
        ) from error


def _unpacked(path: Path, content: bytes, codec: str) -> bytes:
    import pyarrow as pa  # slow to import

    try:
        unpacked: bytes = pa.input_stream(pa.py_buffer(content), compression=codec).read()
    except (OSError, pa.ArrowException) as error:
        raise UserError(
            f"{path}: cannot be unpacked as {codec} ({short(str(error))}); copy the file again"
        ) from error
    return unpacked

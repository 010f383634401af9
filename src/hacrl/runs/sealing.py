"""Folders that are complete or invisible: a manifest with sizes and hashes, then one rename."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from hacrl.runs.writing import sync

__all__ = ["MANIFEST", "damage", "write_sealed"]

MANIFEST = "manifest.json"


def write_sealed(path: Path, write: Callable[[Path], object]) -> None:
    """Make a folder whole: written aside, flushed, the manifest last, then renamed.

    A folder of the same name is replaced. One that was left aside by a crash is dropped.

    Args:
        write: fills the folder that it is given.
    """
    part = path.with_name(path.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        write(part)
        files = {}
        for file in _files(part):
            sync(file)
            files[file.relative_to(part).as_posix()] = _mark(file)
        manifest = part / MANIFEST
        manifest.write_text(json.dumps({"files": files}, indent=2) + "\n", "utf-8")
        sync(manifest)
        for folder in (part, *(inner for inner in part.rglob("*") if inner.is_dir())):
            sync(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    if path.exists():
        shutil.rmtree(path)
    os.replace(part, path)
    sync(path.parent)


def damage(path: Path) -> str | None:
    """What is wrong with a folder that `write_sealed` made; None if every byte is as written."""
    try:
        files = json.loads((path / MANIFEST).read_text("utf-8"))["files"]
        for name, mark in files.items():
            file = path / name
            size = file.stat().st_size
            if size != mark["bytes"]:
                return f"{name} has {size} bytes instead of {mark['bytes']}"
            if _mark(file) != mark:
                return f"{name} has changed since it was written"
    except FileNotFoundError as error:
        return f"{Path(str(error.filename)).relative_to(path)} is missing"
    except OSError as error:
        return f"{error.filename} cannot be read ({error.strerror})"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{MANIFEST} is damaged"
    return None


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _mark(file: Path) -> dict[str, int | str]:
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return {"bytes": file.stat().st_size, "sha256": digest}

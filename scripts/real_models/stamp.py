"""The stamp in a finished folder: what it was made from, and which files it has."""

from __future__ import annotations

import json
from pathlib import Path

from scripts.real_models.sources import Source

__all__ = ["has_stamp", "is_prepared", "write_stamp"]

STAMP = "prepared.json"
SCRIPT_VERSION = 1
"""Raise it whenever the folders come out differently: every folder is then made anew."""


def write_stamp(source: Source, folder: Path) -> None:
    """Put the stamp into a folder that is complete otherwise."""
    stamp = {
        "sha256": source.sha256,
        "script_version": SCRIPT_VERSION,
        "packages": list(source.requirements),
        "files": {path.name: path.stat().st_size for path in sorted(folder.iterdir())},
    }
    (folder / STAMP).write_text(json.dumps(stamp, indent=2) + "\n", encoding="utf-8")


def has_stamp(folder: Path) -> bool:
    """Whether a folder was made here, by whatever version."""
    return (folder / STAMP).is_file()


def is_prepared(source: Source, folder: Path) -> bool:
    """Whether a folder is the one that would be made now, complete."""
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
        sizes = {name: (folder / name).stat().st_size for name in stamp["files"]}
        made_from = (stamp["sha256"], stamp["script_version"])
        return sizes == stamp["files"] and made_from == (source.sha256, SCRIPT_VERSION)
    except (OSError, ValueError, KeyError, TypeError):
        return False

"""Paths in recipes."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

__all__ = ["BUNDLED", "resolve"]

BUNDLED = "bundled:"
"""Prefix of a path that lies inside the installed package."""


def resolve(path: str) -> Path:
    """A path of a recipe: relative to the working folder, or inside the package if `bundled:`."""
    if path.startswith(BUNDLED):
        return Path(str(resources.files("hacrl"))) / path.removeprefix(BUNDLED)
    return Path(path).expanduser()

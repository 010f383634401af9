"""The recipes that come with the package, by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from hacrl.errors import UserError
from hacrl.paths import BUNDLED, resolve

__all__ = ["bundled_recipes", "describe", "find_recipe"]


def bundled_recipes() -> dict[str, Path]:
    """Files of the bundled recipes by name: the path below `recipes/` without its suffix."""
    folder = resolve(f"{BUNDLED}recipes")
    return {
        path.relative_to(folder).with_suffix("").as_posix(): path
        for path in sorted(folder.rglob("*.yaml"))
    }


def find_recipe(text: str) -> Path:
    """The recipe that a user means: a path, the name of a bundled recipe, or the name's end.

    Raises:
        UserError: neither, or an end that several names have.
    """
    path = Path(text).expanduser()
    if path.is_file():
        return path
    known = bundled_recipes()
    matches = [text] if text in known else [name for name in known if name.split("/")[-1] == text]
    if len(matches) == 1:
        return known[matches[0]]
    if matches:
        raise UserError(f"recipe {text}: could be {' or '.join(matches)}; write one of these")
    if path.suffix in {".yaml", ".yml"}:
        raise UserError(f"recipe {text}: there is no such file (looked in {Path.cwd()})")
    raise UserError(f"recipe {text}: neither a file nor a bundled recipe; {_nearest(text, known)}")


def describe(path: Path) -> str:
    """The first comment line of a recipe file, empty if it has none."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") and line.strip("# "):
            return line.strip("# ")
    return ""


def _nearest(text: str, known: Mapping[str, Path]) -> str:
    names = {name.split("/")[-1]: name for name in known} | {name: name for name in known}
    close = difflib.get_close_matches(text, names, n=1, cutoff=0.5)
    return f"did you mean {names[close[0]]}?" if close else "`hacrl recipes` lists those there are"

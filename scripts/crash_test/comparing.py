"""What a run left behind, for comparison bit by bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["content", "differences"]

_ABOUT = {"manifest.json", "state.json"}
"""Say how a run went, not what came of it; the sizes and hashes are those of the other files."""


def content(run: Path) -> dict[str, Any]:
    """Everything in a run folder by its name, but for the time that things took."""
    found: dict[str, Any] = {}
    for path in sorted(run.rglob("*")):
        if path.is_dir() or path.name in _ABOUT:
            continue
        name = path.relative_to(run).as_posix()
        if path.suffix == ".jsonl":
            rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            found[name] = [{k: v for k, v in row.items() if k != "seconds"} for row in rows]
        elif path.name == "run.json":  # has the sizes of files that hold seconds
            state = json.loads(path.read_text("utf-8"))
            found[name] = {k: v for k, v in state.items() if k != "lengths"}
        else:
            found[name] = path.read_bytes()
    return found


def differences(run: Path, undisturbed: Path) -> list[str]:
    """Names of files that are not the same in both, or are in one of them alone."""
    ours, theirs = content(run), content(undisturbed)
    return sorted(
        name
        for name in ours.keys() | theirs.keys()
        if name not in ours or name not in theirs or ours[name] != theirs[name]
    )

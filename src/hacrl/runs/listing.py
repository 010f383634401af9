"""What lies in a folder of runs, read from small files and the ends of large ones."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hacrl.algorithm.methods import method_label

__all__ = ["Listed", "find_runs"]

_DEPTH = 3
_TAIL = 1 << 18
"""Bytes at the end of `metrics.jsonl` that are read."""
_WRITTEN = ("metrics.jsonl", "state.json", "evaluations.jsonl", "recipe.yaml", "rollouts")


@dataclass(frozen=True, slots=True)
class Listed:
    """One run, as far as it has come.

    Args:
        name: path below the folder that was listed.
        method: of the recipe, empty if it cannot be read.
        state: as the run itself has written it.
        done: completed steps.
        steps: of the recipe, None if it cannot be read.
        rewards: last reward by agent, None for a gap or if there is none yet.
        written: seconds since the epoch when it last wrote anything.
    """

    name: str
    method: str
    state: str
    done: int
    steps: int | None
    rewards: dict[str, float | None]
    written: float


def find_runs(root: Path) -> Iterator[Listed]:
    """Every run folder below a folder, itself included, a few levels deep."""
    for place, folders, files in os.walk(root):
        path = Path(place)
        depth = len(path.relative_to(root).parts)
        if "recipe.yaml" in files and "state.json" in files:
            folders.clear()
            yield _listed(path, path.relative_to(root).as_posix() if depth else path.name)
        elif depth >= _DEPTH:
            folders.clear()
        else:
            folders.sort()


def _listed(path: Path, name: str) -> Listed:
    recipe = _mapping(path / "recipe.yaml")
    last = _last_step(path / "metrics.jsonl")
    steps = recipe.get("steps")
    agents = recipe.get("agents")
    return Listed(
        name=name,
        method=method_label(recipe.get("method")),
        state=str(_mapping(path / "state.json").get("state", "unknown")),
        done=last[0]["step"] + 1 if last else 0,
        steps=steps if isinstance(steps, int) else None,
        rewards=dict.fromkeys(agents if isinstance(agents, dict) else ())
        | {row["agent"]: row["reward"] for row in last},
        written=max((path / part).stat().st_mtime for part in _WRITTEN if (path / part).exists()),
    )


def _mapping(path: Path) -> dict[str, Any]:
    """A YAML or JSON file, which is YAML too; empty if it is damaged."""
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return content if isinstance(content, dict) else {}


def _last_step(path: Path) -> list[dict[str, Any]]:
    """The whole rows of the last step in the file; none if there is no file yet."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            lines = file.read().splitlines()
    except OSError:
        return []
    rows = [row for line in lines if (row := _row(line)) is not None]
    return [row for row in rows if row["step"] == rows[-1]["step"]]


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and {"step", "agent", "reward"} <= row.keys() else None

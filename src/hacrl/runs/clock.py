"""The clock that chat templates see: fixed at the start of a run."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from hacrl.config import Recipe

__all__ = ["recorded_clock", "run_clock"]

_KEY = "clock"


def run_clock(recipe: Recipe, run: Path, *, resume: bool) -> datetime:
    """What the recipe says, else when the run began, which is now if it has not.

    Args:
        run: its folder, which may not exist yet.
    """
    began = recorded_clock(run) if resume else None
    return recipe.clock or began or datetime.now().replace(microsecond=0)


def recorded_clock(run: Path) -> datetime | None:
    """What the run's `state.json` says, None if it says nothing."""
    try:
        return datetime.fromisoformat(json.loads((run / "state.json").read_text("utf-8"))[_KEY])
    except (OSError, ValueError, KeyError, TypeError):
        return None

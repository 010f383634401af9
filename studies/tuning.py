"""The search for learning rates: every method of the main table tries the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from studies.grid import Cell
from studies.outcomes import evaluations
from studies.problems import TUNING

__all__ = ["read_rates", "write_search"]


def write_search(cells: Sequence[Cell], runs: Path, path: Path) -> None:
    """Write what was tried: a row per method, learning rate, setting and agent."""
    found = evaluations(cells, runs)
    last = found[(found["task"] == TUNING) & (found["step"] == found["step"].max())]
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = ["method", "learning_rate", "setting", "agent", "accuracy"]
    last[columns].to_csv(path, index=False, float_format="%.6g", lineterminator="\n")


def read_rates(search: Path) -> dict[str, float]:
    """The best learning rate of each method: by mean accuracy over settings and their agents.

    An agent by itself is one row however many settings it is in.
    """
    tried = pd.read_csv(search)
    means = tried.groupby(["method", "learning_rate"], sort=False)["accuracy"].mean().reset_index()
    best = means.loc[means.groupby("method", sort=False)["accuracy"].idxmax()]
    return dict(zip(best["method"], best["learning_rate"], strict=True))

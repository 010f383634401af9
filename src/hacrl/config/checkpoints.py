"""When a run saves what it needs to continue."""

from __future__ import annotations

from hacrl.config.bounds import Count, Rows
from hacrl.config.strict import Strict

__all__ = ["REWARD", "Checkpoints"]

REWARD = "reward"
"""The measure of `checkpoints.best` that needs no evaluation."""


class Checkpoints(Strict):
    """Joint checkpoints: all agents with their optimizers, at the same step.

    Changes nothing learned.
    """

    every: Rows | None = 10
    """Steps between two checkpoints; null saves none but the one at the end of the run."""
    keep: Count = 2
    """How many of the newest are kept."""
    best: str | None = None
    """Also keep the best by this measure, mean over agents: `reward` of the step's rollouts, or
    the name of a held-out task of the evaluation."""

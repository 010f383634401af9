"""Figures of runs, by matplotlib."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

__all__ = ["learning_curves"]

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's palette, told apart by colour-blind people too."""


def learning_curves(runs: Mapping[str, Path], agents: Sequence[str], to: Path) -> None:
    """Draw the mean reward of every agent over the steps, one panel per agent, one line per run.

    Args:
        runs: label -> `metrics.jsonl`.
        to: image file; its suffix decides the format.
    """
    figure = Figure(figsize=(4.6 * len(agents), 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(agents), sharey=True, squeeze=False)[0]
    for (label, path), colour in zip(runs.items(), _COLOURS, strict=False):
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for agent, axis in zip(agents, axes, strict=True):
            own = [row for row in rows if row["agent"] == agent and row["reward"] is not None]
            steps = np.array([row["step"] + 1 for row in own])
            rewards = np.array([row["reward"] for row in own])
            axis.plot(steps, rewards, color=colour, alpha=0.25, linewidth=1)
            axis.plot(steps, _smooth(rewards), color=colour, linewidth=2.2, label=label)
    for agent, axis in zip(agents, axes, strict=True):
        axis.set(title=agent, xlabel="step")
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("mean reward of own rollouts")
    axes[-1].legend(frameon=False, loc="lower right")
    figure.savefig(to, dpi=150)


def _smooth(values: np.ndarray, window: int = 7) -> np.ndarray:
    """Mean over a centred window, shorter at both ends."""
    half = window // 2
    return np.array([values[max(0, i - half) : i + half + 1].mean() for i in range(len(values))])

"""Was any of it wasted or unstable, and where the time went, in one run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.figure import FigureBase

from hacrl.records import Outcome
from hacrl.report.drawing import COLOURS, Chart, Panel, draw_stack, tidy
from hacrl.report.reading import Row, RunData
from hacrl.report.series import curve, get, metric, thin

__all__ = ["outcomes", "signal", "time"]

_OUTCOMES = {
    Outcome.RIGHT: ("#009E73", ""),
    Outcome.WRONG: ("#D55E00", "///"),
    Outcome.NO_ANSWER: ("#E69F00", "..."),
    Outcome.NOT_VERIFIABLE: ("#999999", "xxx"),
    Outcome.TIMEOUT: ("#56B4E9", "\\\\\\"),
    Outcome.SCORER_ERROR: ("#000000", "+++"),
}
_HATCHES = ("", "///", "\\\\\\", "...", "xxx", "+++", "---")


def signal(run: RunData) -> Chart | None:
    """The share of groups that hold something to learn from, and how often the guard acted."""
    panels = [Panel(name, partial(_signal, rows=run.of(name))) for name in run.learners]
    caption = (
        "Groups of responses to one prompt, by where their signal comes from. Without signal: all "
        "rewards are equal, so the prompt was too easy or too hard for every agent, and its "
        "rollouts were wasted. From peers only: alone, the learner would have learned nothing from "
        "it. Line: share of groups in which the guard replaced the baseline, because ω had moved "
        "it out of the range of rewards; rarely is fine, often means that capabilities differ much."
    )
    return Chart("signal", "Signal and guard", caption, panels) if panels else None


def outcomes(run: RunData) -> Chart | None:
    """The verdicts on every agent's responses."""
    seen = [
        outcome for outcome in _OUTCOMES if any(row["outcomes"].get(outcome) for row in run.rows)
    ]
    panels = [
        Panel(name, partial(_outcomes, rows=rows, seen=seen))
        for name in run.agents
        if (rows := run.of(name))
    ]
    caption = (
        "Verdicts of all responses. Many without an answer: the reward teaches the format "
        "first. Timeouts or scorer errors: check the verifier first (hacrl verify)."
    )
    return Chart("outcomes", "Verdicts", caption, panels) if panels and seen else None


def time(run: RunData) -> Chart | None:
    """Seconds of each step by phase, of all agents together."""
    steps = list({row["step"]: row for row in run.rows}.values())
    phases = list(dict.fromkeys(phase for row in steps for phase in row["seconds"]))
    caption = "Seconds of each step by phase, of all agents together; saving and evaluation apart."
    panels = [Panel("all agents", partial(_time, rows=steps, phases=phases))]
    return Chart("time", "Where the time went", caption, panels) if phases else None


def _signal(figure: FigureBase, rows: Sequence[Row]) -> None:
    axis = figure.subplots()
    peers = thin(curve(rows, lambda row: _share(row, "groups_with_signal_from_peers_only")))
    without = thin(curve(rows, lambda row: _share(row, "groups_without_signal")))
    parts = [
        ("own signal", 1 - peers.y - without.y, "#56B4E9", ""),
        ("from peers only", peers.y, "#E69F00", "///"),
        ("without", without.y, "#DDDDDD", ""),
    ]
    draw_stack(axis, peers.x, parts, legend=False)
    guard = thin(metric(rows, "guard_rate"))
    axis.plot(guard.x, guard.y, color="black", linewidth=1.2, label="guard")
    axis.set(xlabel="completed steps", ylabel="share of groups")
    tidy(axis, shares=True, legend=False)
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, handlelength=1.2)


def _share(row: Row, name: str) -> float:
    return get(row, name) / row["groups"] if row["groups"] else np.nan


def _outcomes(figure: FigureBase, rows: Sequence[Row], seen: Sequence[Outcome]) -> None:
    axis = figure.subplots()
    parts = []
    for outcome in seen:
        series = thin(curve(rows, partial(_part, outcome=outcome)))
        parts.append((str(outcome).replace("_", " "), series.y, *_OUTCOMES[outcome]))
    draw_stack(axis, series.x, parts)
    axis.set(xlabel="completed steps", ylabel="share of responses")
    tidy(axis, shares=True, legend=False)


def _part(row: Row, outcome: str) -> float:
    total = sum(row["outcomes"].values())
    return row["outcomes"].get(outcome, 0) / total if total else np.nan


def _spent(row: Row, phase: str) -> float:
    return float(row["seconds"].get(phase, 0.0))


def _time(figure: FigureBase, rows: Sequence[Row], phases: Sequence[str]) -> None:
    axis = figure.subplots()
    parts = []
    for i, phase in enumerate(phases):
        series = thin(curve(rows, partial(_spent, phase=phase)))
        parts.append((phase, series.y, COLOURS[i % len(COLOURS)], _HATCHES[i % len(_HATCHES)]))
    draw_stack(axis, series.x, parts)
    axis.set(xlabel="completed steps", ylabel="seconds per step")

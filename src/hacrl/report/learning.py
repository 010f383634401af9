"""Did everyone improve, and at what cost: curves that compare runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from hacrl.report.drawing import Chart, Panel, line_style, tidy
from hacrl.report.reading import Row, RunData
from hacrl.report.series import SMOOTHED, Curve, Group, Values, band, get, metric, smooth, thin

__all__ = ["cost", "held_out", "learning"]

_REWARD = "mean reward of own rollouts"


def learning(groups: Sequence[Group]) -> Chart | None:
    """The reward of every agent over the steps: one panel per agent, one line per group of runs."""
    panels = [
        Panel(
            agent if agent in _learners(groups) else f"{agent}, which does not learn",
            partial(_reward, groups=groups, agent=agent),
        )
        for agent in _agents(groups)
        if any(run.of(agent) for group in groups for run in group.runs)
    ]
    caption = (
        f"Mean reward of each agent's own rollouts. Bold: mean over {SMOOTHED} steps; faint: every "
        "step. Several seeds: their mean, with the 95% interval of that mean (Student's t). Look "
        "for curves that rise for every agent, and for gains that are larger than the intervals."
    )
    return Chart("learning", "Learning curves", caption, panels) if panels else None


def held_out(groups: Sequence[Group]) -> Chart | None:
    """Accuracy on held-out problems over the steps, where the runs were evaluated."""
    evaluated = [run for group in groups for run in group.runs if run.evaluations]
    pairs = dict.fromkeys(
        (row["agent"], row["task"]) for run in evaluated for row in run.evaluations
    )
    panels = [
        Panel(
            f"{agent}, {task}",
            partial(_accuracy, groups=groups, agent=agent, task=task),
        )
        for agent, task in sorted(pairs, key=lambda pair: (_agents(groups).index(pair[0]), pair[1]))
    ]
    caption = (
        "On problems that no agent trained on. Bars: 95% interval over problems for one run, over "
        "seeds for several. This, and not the reward in training, says how good an agent is."
    )
    return Chart("held-out", "Held-out accuracy", caption, panels) if panels else None


def cost(groups: Sequence[Group]) -> Chart | None:
    """What every agent has reached against what it has sampled, in responses and in tokens."""
    units: Sequence[tuple[str, Callable[[Row], float]]] = (
        ("own rollouts", lambda row: get(row, "scored") + get(row, "unscored")),
        ("own generated tokens", lambda row: get(row, "generated_tokens")),
    )
    panels = [
        Panel(
            f"{agent}: {unit}",
            partial(_cost, groups=groups, agent=agent, unit=unit, spent=spent),
        )
        for agent in _learners(groups)
        for unit, spent in units
    ]
    caption = (
        "The same against what an agent has sampled itself since the start: accuracy on held-out "
        f"problems where the run was evaluated, else the reward as a mean over {SMOOTHED} steps. "
        "Of two lines, the one further left at the same height is cheaper. What peers sampled is "
        "not counted, since their responses train them too."
    )
    return Chart("cost", "What it took", caption, panels, columns=2) if panels else None


def _agents(groups: Sequence[Group]) -> list[str]:
    return list(
        dict.fromkeys(name for group in groups for run in group.runs for name in run.agents)
    )


def _learners(groups: Sequence[Group]) -> list[str]:
    return list(
        dict.fromkeys(name for group in groups for run in group.runs for name in run.learners)
    )


def _reward(figure: FigureBase, groups: Sequence[Group], agent: str) -> None:
    axis = figure.subplots()
    for i, group in enumerate(groups):
        curves = [_curve(run, agent) for run in group.runs if run.of(agent)]
        if len(curves) == 1:
            raw = thin(curves[0])
            axis.plot(raw.x, raw.y, color=line_style(i)["color"], alpha=0.25, linewidth=1)
        _draw(axis, i, group.label, [thin(smooth(series)) for series in curves])
    axis.set(xlabel="completed steps", ylabel=_REWARD)
    tidy(axis)


def _accuracy(figure: FigureBase, groups: Sequence[Group], agent: str, task: str) -> None:
    axis = figure.subplots()
    for i, group in enumerate(groups):
        evaluated = [rows for run in group.runs if (rows := _evaluated(run, agent, task))]
        if len(evaluated) == 1:
            (rows,) = evaluated
            x, y = (np.array([row[key] for row in rows], dtype=float) for key in ("step", "value"))
            ends = np.array(
                [[row.get(end, row["value"]) for row in rows] for end in ("low", "high")],
                dtype=float,
            )
            errors = np.abs(ends - y)
        else:
            made = band([_accuracy_curve(rows) for rows in evaluated])
            x, y, errors = made.x, made.mean, np.nan_to_num(made.high - made.mean)
        if len(x):
            axis.errorbar(x, y, errors, label=group.label, capsize=2.5, **line_style(i))
    axis.set(xlabel="completed steps", ylabel="accuracy")
    tidy(axis)


def _cost(
    figure: FigureBase,
    groups: Sequence[Group],
    agent: str,
    unit: str,
    spent: Callable[[Row], float],
) -> None:
    axis = figure.subplots()
    evaluated = any(_evaluated(run, agent) for group in groups for run in group.runs)
    for i, group in enumerate(groups):
        curves, paid = [], []
        for run in group.runs:
            own = run.of(agent)
            if not own:
                continue
            rows = _evaluated(run, agent)
            series = _accuracy_curve(rows) if evaluated else thin(smooth(_curve(run, agent)))
            curves.append(series)
            steps = np.array([0.0, *(row["step"] + 1 for row in own)])
            total = np.array([0.0, *np.cumsum([spent(row) for row in own])])
            paid.append(Curve(series.x, np.interp(series.x, steps, total)))
        if curves:
            _draw(axis, i, group.label, curves, band(paid).mean, markers=evaluated)
    axis.set(xlabel=unit, ylabel="held-out accuracy" if evaluated else _REWARD)
    axis.xaxis.set_major_formatter(lambda value, _: _short(value))
    tidy(axis)


def _draw(
    axis: Axes,
    i: int,
    label: str,
    curves: Sequence[Curve],
    x: Values | None = None,
    *,
    markers: bool = False,
) -> None:
    """A group as a line with its interval; `x` replaces the steps."""
    made = band(curves)
    if not len(made.x):
        return
    x = made.x if x is None else x
    style = line_style(i)
    if not markers and len(made.x) > 1:
        style["marker"] = None
    axis.plot(x, made.mean, linewidth=2, label=label, **style)
    axis.fill_between(x, made.low, made.high, color=style["color"], alpha=0.18, linewidth=0)


def _curve(run: RunData, agent: str) -> Curve:
    return metric(run.of(agent), "reward")


def _evaluated(run: RunData, agent: str, task: str | None = None) -> list[Row]:
    """Measured evaluations of an agent; without a task, on the first of them."""
    rows = [row for row in run.evaluations if row["agent"] == agent and row["value"] is not None]
    wanted = task or next((row["task"] for row in rows), None)
    return [row for row in rows if row["task"] == wanted]


def _accuracy_curve(rows: Sequence[Row]) -> Curve:
    """Over completed steps; an evaluation's step is their number already."""
    return Curve(
        np.array([row["step"] for row in rows], dtype=float),
        np.array([row["value"] for row in rows], dtype=float),
    )


def _short(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"

"""The figures of the study, drawn as the report draws its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from hacrl.report.drawing import COLOURS, Chart, Panel, line_style, tidy
from studies.comparing import difference, level, overall, scores
from studies.grid import Grid
from studies.statistics import over_seeds
from studies.tables import NAMES

__all__ = ["draw_figures", "draw_rates"]

_SMOOTH = 5
"""Steps that a training curve is averaged over."""


def draw_figures(
    evaluations: pd.DataFrame, steps: pd.DataFrame, last: pd.DataFrame, grid: Grid, folder: Path
) -> None:
    """Write every figure as SVG.

    Args:
        evaluations, steps, last: of the main table's methods, by setting; see `comparing`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for chart in (
        _gains(last, grid),
        _curves(evaluations, grid, "rollouts", "own rollouts", "accuracy-by-rollouts"),
        _curves(evaluations, grid, "tokens", "own generated tokens", "accuracy-by-tokens"),
        _rewards(steps, grid),
        _ratios(steps, grid),
        _per_pair(steps, grid, "teaching", "share of rows that teach", "teaching"),
        _per_pair(steps, grid, "alignment", "cosine with the own gradient", "alignment"),
        _bias(steps, grid),
    ):
        chart.save(folder / f"{chart.name}.svg")


def draw_rates(last: pd.DataFrame, methods: Sequence[str], name: str, folder: Path) -> None:
    """Write, as SVG, what methods reach at several learning rates, with intervals.

    Args:
        last: rows of a question after training, by setting.
    """

    def draw(figure: FigureBase) -> None:
        axis = figure.subplots()
        tables = {rate: scores(rows) for rate, rows in last.groupby("learning_rate")}
        for i, method in enumerate(methods):
            found = [level(table, method) for table in tables.values()]
            axis.errorbar(
                list(tables),
                [interval.mean for interval in found],
                yerr=[np.nan_to_num(interval.half_width) for interval in found],
                label=NAMES[method],
                capsize=2,
                **line_style(i),
            )
        axis.set_xscale("log")
        axis.set_xticks(list(tables), [f"{rate:g}" for rate in tables])
        axis.minorticks_off()
        axis.set_xlabel("learning rate")
        axis.set_ylabel("held-out accuracy")
        axis.legend(loc="best")

    Chart(name, name, "", [Panel("mean over the agents", draw)]).save(folder / f"{name}.svg")


def _pairs(grid: Grid) -> list[tuple[str, str]]:
    return [(setting, agent) for setting, agents in grid.main_settings.items() for agent in agents]


def _chart(name: str, draws: Sequence[tuple[str, Callable[[FigureBase], None]]]) -> Chart:
    return Chart(name, name, "", [Panel(title, draw) for title, draw in draws])


def _gains(last: pd.DataFrame, grid: Grid) -> Chart:
    """HACPO less GSPO and less GSPO×2, for every agent of every setting, with intervals."""
    table = scores(last)

    def draw(figure: FigureBase) -> None:
        axis = figure.subplots()
        names = [*(f"{setting}: {agent}" for setting, agent in _pairs(grid)), "mean"]
        others = [other for other in ("gspo", "gspo_x2") if other in grid.main.methods]
        for i, other in enumerate(others):
            found = [difference(table, "hacpo", other, *pair) for pair in _pairs(grid)]
            found.append(overall(table, "hacpo", other))
            axis.errorbar(
                [100 * interval.mean for interval in found],
                np.arange(len(names)) + 0.2 * i - 0.1,
                xerr=[100 * np.nan_to_num(interval.half_width) for interval in found],
                label=f"HACPO − {NAMES[other]}",
                linestyle="",
                marker=line_style(i)["marker"],
                color=COLOURS[i],
                capsize=2,
            )
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set_yticks(range(len(names)), names)
        axis.invert_yaxis()
        axis.set_xlabel("percentage points, 95% interval over seeds")
        axis.grid(axis="x", alpha=0.3)
        axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)

    return Chart("gains", "gains", "", [Panel("accuracy on all held-out sets", draw, 1.4)])


def _curves(evaluations: pd.DataFrame, grid: Grid, x: str, label: str, name: str) -> Chart:
    """Held-out accuracy against what was spent on an agent's own rollouts.

    Every method begins where the one begins that was evaluated at the start.
    """
    means = evaluations.groupby(["setting", "agent", "method", "step", "seed"])[
        ["accuracy", x]
    ].mean()

    def draw(setting: str, agent: str, figure: FigureBase) -> None:
        axis = figure.subplots()
        start = means.loc[setting, agent].xs(0, level="step")["accuracy"].mean()
        for i, method in enumerate(grid.main.methods):
            rows = means.loc[setting, agent, method].groupby("step").mean()
            rows.loc[0] = {x: 0, "accuracy": start}
            rows = rows.sort_index()
            axis.plot(
                rows[x],
                rows["accuracy"],
                label=NAMES[method],
                **line_style(i),
            )
        axis.set_xlabel(label)
        axis.set_ylabel("held-out accuracy")
        tidy(axis, legend=agent == grid.main_settings[setting][0])
        axis.locator_params(axis="x", nbins=5)

    return _chart(name, [(f"{s}: {a}", functools.partial(draw, s, a)) for s, a in _pairs(grid)])


def _rewards(steps: pd.DataFrame, grid: Grid) -> Chart:
    """Training reward, the mean over seeds with its interval."""
    own = steps[steps["agent"] == steps["source"]]

    def draw(setting: str, agent: str, figure: FigureBase) -> None:
        axis = figure.subplots()
        for i, method in enumerate(grid.main.methods):
            rows = own[
                (own["setting"] == setting) & (own["agent"] == agent) & (own["method"] == method)
            ]
            _band(rows, "reward", axis, i, NAMES[method], smooth=True)
        axis.set_xlabel("step")
        axis.set_ylabel("reward of own rollouts")
        tidy(axis, legend=agent == grid.main_settings[setting][0])

    return _chart(
        "training-reward", [(f"{s}: {a}", functools.partial(draw, s, a)) for s, a in _pairs(grid)]
    )


def _ratios(steps: pd.DataFrame, grid: Grid) -> Chart:
    """Cross ratios under HACPO: mean and standard deviation over the rows of a step."""
    hacpo = steps[steps["method"] == "hacpo"]

    def draw(setting: str, figure: FigureBase) -> None:
        axis = figure.subplots()
        for i, (learner, source) in enumerate(_directions(grid, setting)):
            rows = _between(hacpo, setting, learner, source)
            mean = rows.groupby("step")[["ratio", "ratio_std"]].mean()
            axis.plot(mean.index, mean["ratio"], label=f"{learner} ← {source}", **_line(i))
            axis.fill_between(
                mean.index,
                mean["ratio"] - mean["ratio_std"],
                mean["ratio"] + mean["ratio_std"],
                color=COLOURS[i],
                alpha=0.12,
                linewidth=0,
            )
        delta = grid.recipe["clip"]["delta"]
        axis.axhspan(1 - delta, 1.0, color="black", alpha=0.08, label="clip interval, first update")
        axis.set_xlabel("step")
        axis.set_ylabel("cross ratio s(k,j)")
        tidy(axis)

    return _chart("cross-ratios", [(s, functools.partial(draw, s)) for s in grid.main_settings])


def _per_pair(steps: pd.DataFrame, grid: Grid, column: str, label: str, name: str) -> Chart:
    """One line for each learner and source under HACPO."""
    hacpo = steps[(steps["method"] == "hacpo") & steps[column].notna()]

    def draw(setting: str, figure: FigureBase) -> None:
        axis = figure.subplots()
        for i, (learner, source) in enumerate(_directions(grid, setting)):
            rows = _between(hacpo, setting, learner, source)
            _band(rows, column, axis, i, f"{learner} ← {source}", smooth=column == "teaching")
        axis.axhline(0, color="black", linewidth=0.8)
        axis.set_xlabel("step")
        axis.set_ylabel(label)
        tidy(axis)

    return _chart(name, [(s, functools.partial(draw, s)) for s in grid.main_settings])


def _bias(steps: pd.DataFrame, grid: Grid) -> Chart:
    """μ̂(k) less the own group mean, which Theorem 4.1 says is 0 on average."""
    own = steps[(steps["method"] == "hacpo") & (steps["agent"] == steps["source"])]

    def draw(setting: str, figure: FigureBase) -> None:
        axis = figure.subplots()
        for i, agent in enumerate(grid.main_settings[setting]):
            rows = own[(own["setting"] == setting) & (own["agent"] == agent)]
            _band(rows, "bias", axis, i, agent, smooth=True)
        axis.axhline(0, color="black", linewidth=0.8)
        axis.set_xlabel("step")
        axis.set_ylabel("μ̂(k) − own group mean")
        tidy(axis)

    return _chart("baseline-bias", [(s, functools.partial(draw, s)) for s in grid.main_settings])


def _directions(grid: Grid, setting: str) -> list[tuple[str, str]]:
    agents = grid.main_settings[setting]
    return [(learner, source) for learner in agents for source in agents if source != learner]


def _between(steps: pd.DataFrame, setting: str, learner: str, source: str) -> pd.DataFrame:
    return steps[
        (steps["setting"] == setting) & (steps["agent"] == learner) & (steps["source"] == source)
    ]


def _band(rows: pd.DataFrame, column: str, axis: Axes, i: int, label: str, *, smooth: bool) -> None:
    """The mean over seeds at each step, with its 95% interval behind."""
    wide = rows.pivot_table(index="step", columns="seed", values=column)
    if smooth:
        wide = wide.rolling(_SMOOTH, min_periods=1).mean()
    found = [over_seeds(values) for values in wide.to_numpy()]
    axis.plot(wide.index, [interval.mean for interval in found], label=label, **_line(i))
    axis.fill_between(
        wide.index,
        [interval.low for interval in found],
        [interval.high for interval in found],
        color=COLOURS[i],
        alpha=0.15,
        linewidth=0,
    )


def _line(i: int) -> dict[str, Any]:
    """A line without markers, for points that are dense."""
    style = line_style(i)
    return {"color": style["color"], "linestyle": style["linestyle"]}

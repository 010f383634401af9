"""Who taught whom in one run: matrices, cross ratios, clipping and alignment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import FigureBase

from hacrl.algorithm.objective import stepwise_bounds
from hacrl.report.drawing import Chart, Panel, draw_stack, line_style, tidy
from hacrl.report.reading import Row, RunData
from hacrl.report.series import Values, curve, get, metric, quarters, smooth, thin

__all__ = ["alignment", "bounds", "clipping", "flows", "matrices"]

_MANY = 8
"""Agents above which cells hold no numbers."""
_MANY_PAIRS = 12


class _OfPair(Protocol):
    def __call__(self, row: Row, peer: str) -> float: ...


def _omega(row: Row, peer: str) -> float:
    return get(row, "omega", peer)


def _teaching(row: Row, peer: str) -> float:
    return get(row, "sources", peer, "teaching")


def _ratio(row: Row, peer: str) -> float:
    return get(row, "sources", peer, "ratio_mean")


_QUANTITIES: Sequence[tuple[str, str, _OfPair]] = (
    ("ω", "omega", _omega),
    ("cross rows that teach", "teaching", _teaching),
    ("mean cross ratio", "ratio", _ratio),
)


def matrices(run: RunData) -> Chart | None:
    """Learner by source: ω, share of rows that teach, mean ratio, in each quarter of the run."""
    if not _pairs(run):
        return None
    panels = [
        Panel(
            title,
            partial(_matrix, run=run, kind=kind, value=value),
            height=1.25,
        )
        for title, kind, value in _QUANTITIES
    ]
    caption = (
        "Rows learn, columns teach; each square is the mean over a part of the run. "
        "ω(learner, source) above 1: the learner is the more capable of the two. A source whose "
        "rows seldom teach is one whose answers are too far from what the learner would say, or "
        "too rarely better or worse than expected."
    )
    return Chart("matrix", "Who teaches whom", caption, panels)


def flows(run: RunData) -> Chart | None:
    """The same quantities as lines over the steps, one per learner and source."""
    pairs = _pairs(run)
    if not pairs or len(pairs) > _MANY_PAIRS:
        return None
    panels = [
        Panel(title, partial(_flow, run=run, kind=kind, value=value))
        for title, kind, value in _QUANTITIES
    ]
    caption = (
        "The same over the steps, as means over 7; learner ← source. As agents diverge, ratios "
        "drift towards 0 and fewer rows teach; a share that falls while all agents improve is "
        "expected, since fewer groups then have different rewards."
    )
    return Chart("flows", "Who teaches whom, step by step", caption, panels)


def clipping(run: RunData) -> Chart | None:
    """For every learner and author, the shares of rows below, inside and above the clip."""
    learners = run.learners
    panels = [
        Panel(
            f"{name} learns",
            partial(_clip_shares, run=run, learner=name),
            height=0.35 + 0.55 * (1 + len(_sources(run, name))),
        )
        for name in learners
    ]
    caption = (
        "Of the rows that were computed. Cross rows outside the interval teach nothing; own rows "
        "outside it lose their gradient on one side. Mostly below: the learner finds its peer's "
        "answers improbable, so a larger δ lets more of them in. Above, of cross rows: it finds "
        "them more probable than their author did. Many own rows outside: the own clip is narrow "
        "for the learning rate. Gaps: nothing was computed."
    )
    return Chart("clipping", "Clipped or not", caption, panels) if panels else None


def bounds(run: RunData, lessons: Mapping[int, Sequence[Mapping[str, Any]]]) -> Chart | None:
    """Sequence ratios by optimizer update within the step, with the stepwise bound.

    Args:
        lessons: rows of some steps, as stored.
    """
    rows = [row for step in lessons.values() for row in step if row["log_ratio"] is not None]
    learners = [name for name in run.agents if any(row["learner"] == name for row in rows)]
    panels = [
        Panel(f"{name} learns", partial(_bound, run=run, learner=name, rows=rows))
        for name in learners
    ]
    steps = ", ".join(str(step + 1) for step in sorted(lessons))
    caption = (
        "Sequence ratios s by the number of optimizer updates that the learner had made in the "
        f"step: median and middle 90%. Grey: where cross ratios pass, [1 − δ + m·δ_step, 1]. Steps "
        f"{steps} only. Ratios far below the grey area: the agents differ greatly. A bound "
        "that has reached 1 excludes every cross row."
    )
    return Chart("bounds", "Ratios and the stepwise bound", caption, panels) if panels else None


def alignment(run: RunData) -> Chart | None:
    """Cosine of the gradients from peers' and from own rows, where it was measured."""
    panels = [
        Panel(f"{name} learns", partial(_alignment, rows=rows))
        for name in run.agents
        if (rows := [row for row in run.of(name) if row.get("alignment")])
    ]
    caption = (
        "Cosine of the gradients of J_hete and J_homo on a probe mini-batch (Theorem 4.3). "
        "Above 0: peers' rows agree with the learner's own. Around 0: they are unrelated. "
        "Persistently below 0: they work against each other."
    )
    return Chart("alignment", "Gradient alignment", caption, panels) if panels else None


def _pairs(run: RunData) -> list[tuple[str, str]]:
    return [(name, source) for name in run.learners for source in _sources(run, name)]


def _sources(run: RunData, learner: str) -> list[str]:
    return list(dict.fromkeys(source for row in run.of(learner) for source in row["sources"]))


def _matrix(figure: FigureBase, run: RunData, kind: str, value: _OfPair) -> None:
    spans = quarters(run.rows)
    columns = min(2, len(spans))
    axes = figure.subplots(-(-len(spans) // columns), columns, squeeze=False).ravel()
    made = [_mean_matrix(span, run.agents, value) for span in spans]
    known = np.concatenate([matrix[~np.isnan(matrix)] for matrix in made])
    far = max(float(np.abs(known - 1).max()) if len(known) else 0.0, 0.05)
    shade: dict[str, Any] = (
        {"cmap": "cividis", "vmin": 0, "vmax": 1}
        if kind == "teaching"
        else {"cmap": "PuOr", "norm": TwoSlopeNorm(1.0, 1.0 - far, 1.0 + far)}
    )
    middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
    for axis in axes[len(spans) :]:
        axis.set_axis_off()
    for axis, matrix, span in zip(axes, made, spans, strict=False):
        image = axis.pcolormesh(matrix, edgecolors="white", linewidth=1, **shade)
        axis.set_aspect("equal")
        axis.invert_yaxis()
        first, last = span[0]["step"] + 1, span[-1]["step"] + 1
        axis.set_title(f"steps {first}-{last}" if last > first else f"step {first}", fontsize=8)
        centres = np.arange(len(run.agents)) + 0.5
        names = [name if len(name) <= 9 else f"{name[:8]}…" for name in run.agents]
        axis.set_xticks(centres, names, fontsize=7, rotation=30 if len(names) > 3 else 0)
        axis.set_yticks(centres, names, fontsize=7)
        axis.spines[:].set(visible=True, color="#BBBBBB")
        axis.tick_params(length=0)
        if len(names) > _MANY:
            continue
        for (k, j), cell in np.ndenumerate(matrix):
            if not math.isnan(cell):
                text = f"{cell:.0%}" if kind == "teaching" else f"{cell:.2f}"
                axis.text(j + 0.5, k + 0.5, text, color=_ink(image, cell), **middle)
            elif k != j:
                axis.text(j + 0.5, k + 0.5, "–", color="#666666", **middle)
    if len(run.agents) > _MANY and spans:
        scale = figure.colorbar(image, ax=list(axes), shrink=0.6)
        if scale.solids is not None:  # the page allows no embedded images
            scale.solids.set_rasterized(False)


def _ink(image: Any, cell: float) -> str:
    """Black or white, whichever stands out from the cell's colour."""
    red, green, blue, _ = image.cmap(image.norm(cell))
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


def _mean_matrix(rows: Sequence[Row], agents: Sequence[str], value: _OfPair) -> Values:
    mean = np.full((len(agents), len(agents)), np.nan)
    for k, learner in enumerate(agents):
        own = [row for row in rows if row["agent"] == learner]
        for j, source in enumerate(agents):
            values = [value(row, source) for row in own if source in row.get("sources", ())]
            known = [entry for entry in values if not math.isnan(entry)]
            if known:
                mean[k, j] = np.mean(known)
    return mean


def _flow(figure: FigureBase, run: RunData, kind: str, value: _OfPair) -> None:
    axis = figure.subplots()
    for i, (learner, source) in enumerate(_pairs(run)):
        series = thin(smooth(curve(run.of(learner), partial(value, peer=source))))
        style = line_style(i) | ({"marker": None} if len(series.x) > 1 else {})
        axis.plot(series.x, series.y, label=f"{learner} ← {source}", **style)
    if kind != "teaching":
        axis.axhline(1.0, color="#888888", linewidth=0.8)
    axis.set(xlabel="completed steps")
    tidy(axis, shares=kind == "teaching")


def _clip_shares(figure: FigureBase, run: RunData, learner: str) -> None:
    rows = run.of(learner)
    authors = [("own rows", ("own",)), *((s, ("sources", s)) for s in _sources(run, learner))]
    axes = figure.subplots(len(authors), 1, sharex=True, squeeze=False).ravel()
    for i, (axis, (author, path)) in enumerate(zip(axes, authors, strict=True)):
        parts = []
        for name, colour, hatch in (
            ("below", "#0072B2", "///"),
            ("inside", "#DDDDDD", ""),
            ("above", "#D55E00", "\\\\\\"),
        ):
            series = thin(metric(rows, *path, name))
            parts.append((name, series.y, colour, hatch))
        draw_stack(axis, series.x, parts, legend=i == 0)
        tidy(axis, shares=True, legend=False)
        axis.set_ylabel(author if i == 0 else f"from {author}")
    axes[-1].set_xlabel("completed steps")


def _bound(
    figure: FigureBase, run: RunData, learner: str, rows: Sequence[Mapping[str, Any]]
) -> None:
    axis = figure.subplots()
    mine = [row for row in rows if row["learner"] == learner]
    last = max(row["update"] for row in mine)
    if run.setting("clip.cross") == "stepwise" and any(row["agent"] != learner for row in mine):
        delta, rise = run.setting("clip.delta"), run.setting("clip.delta_step")
        edges = np.repeat(np.arange(last + 2) - 0.5, 2)[1:-1]
        lows = np.repeat([stepwise_bounds(delta, rise, m)[0] for m in range(last + 1)], 2)
        axis.fill_between(edges, lows, 1.0, color="#BBBBBB", alpha=0.6, linewidth=0)
        axis.plot(edges, lows, color="#555555", linewidth=1, label="bound")
    authors = [learner, *_sources(run, learner)]
    for i, author in enumerate(authors):
        x, low, middle, high = _spread(row for row in mine if row["agent"] == author)
        if not len(x):
            continue
        shift = 0.3 * (i / (len(authors) - 1) - 0.5) if len(authors) > 1 else 0.0
        label = "own rows" if author == learner else f"from {author}"
        style = line_style(i) | {"linestyle": "none"}
        axis.errorbar(
            x + shift, middle, [middle - low, high - middle], label=label, capsize=2.5, **style
        )
    axis.axhline(1.0, color="#888888", linewidth=0.8)
    axis.set(xlabel="updates already made in the step", ylabel="sequence ratio s")
    axis.set_xlim(-0.6, last + 0.6)
    tidy(axis)


def _spread(rows: Iterable[Mapping[str, Any]]) -> tuple[Values, Values, Values, Values]:
    """Updates, and the 5%, 50% and 95% quantiles of the ratios at each."""
    ratios_by_update: dict[int, list[float]] = {}
    for row in rows:
        ratios_by_update.setdefault(row["update"], []).append(
            math.exp(max(-10, min(10, row["log_ratio"])))
        )
    updates = sorted(ratios_by_update)
    quantiles = [np.quantile(ratios_by_update[update], (0.05, 0.5, 0.95)) for update in updates]
    low, middle, high = np.array(quantiles).reshape(len(updates), 3).T
    return np.array(updates, dtype=float), low, middle, high


def _alignment(figure: FigureBase, rows: Sequence[Row]) -> None:
    axis = figure.subplots()
    sources = list(dict.fromkeys(source for row in rows for source in row["alignment"]))
    for i, source in enumerate(sources):
        series = thin(metric(rows, "alignment", source))
        axis.plot(series.x, series.y, label=f"from {source}", **line_style(i))
    if len(sources) > 1:
        series = thin(metric(rows, "alignment_of_peers"))
        axis.plot(series.x, series.y, label="all peers", color="black", linewidth=2)
    axis.axhline(0.0, color="#888888", linewidth=0.8)
    axis.set(xlabel="completed steps", ylabel="cosine", ylim=(-1.05, 1.05))
    tidy(axis)

"""The tables of the study, as Markdown, in the form of the paper's."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from studies.comparing import difference, level, overall, scores
from studies.grid import Grid, Question
from studies.problems import HELD_OUT
from studies.statistics import Interval, over_seeds

__all__ = [
    "NAMES",
    "ablation_table",
    "against_table",
    "course_table",
    "main_table",
    "question_table",
    "search_table",
    "sets_table",
]

NAMES = {
    "grpo": "GRPO",
    "gspo": "GSPO",
    "gspo_x2": "GSPO×2",
    "naive": "Naive",
    "one_way": "strong to weak only",
    "hacpo": "HACPO",
    "no_capability": "without capability-aware advantage",
    "no_discrepancy": "without discrepancy coefficient",
    "alpha_0": "α = 0",
    "alpha_2": "α = 2",
    "alpha_3": "α = 3",
    "no_stepwise": "without stepwise schedule",
    "no_cross_clip": "without cross clipping",
    "learner_baseline": "`advantage.cross_baseline: learner`",
    "own_length": "`ratio.length: own`",
    "mixed": "`update.order: mixed`",
}


def main_table(last: pd.DataFrame, start: pd.DataFrame, grid: Grid) -> str:
    """Accuracy of every agent in every setting under every method, on every held-out set.

    Args:
        last: rows after training, by setting (see `comparing`).
        start: rows before training.
    """
    header = ["setting", "agent", "method", *HELD_OUT, "mean"]
    rows = []
    for setting, agents in grid.main_settings.items():
        for agent in agents:
            before = start[start["agent"] == agent]
            rows.append([setting, agent, "at the start", *_accuracies(before)])
            for method in grid.main.methods:
                chosen = last[
                    (last["setting"] == setting)
                    & (last["agent"] == agent)
                    & (last["method"] == method)
                ]
                rows.append([setting, agent, NAMES[method], *_accuracies(chosen)])
    return _markdown(header, rows)


def against_table(last: pd.DataFrame, grid: Grid, others: Sequence[str]) -> str:
    """What HACPO has more than other methods, paired by seed, in percentage points."""
    table = scores(last)
    header = ["setting", "agent", *(f"HACPO − {NAMES[other]}" for other in others)]
    rows = [
        [setting, agent, *(_points(difference(table, "hacpo", o, setting, agent)) for o in others)]
        for setting, agents in grid.main_settings.items()
        for agent in agents
    ]
    total = ["**all**", "**mean**", *(f"**{_points(overall(table, 'hacpo', o))}**" for o in others)]
    return _markdown(header, [*rows, total])


def sets_table(last: pd.DataFrame, others: Sequence[str]) -> str:
    """What HACPO has more than other methods on each held-out set, in percentage points."""
    header = ["held-out set", *(f"HACPO − {NAMES[other]}" for other in others)]
    rows = []
    for name, words in HELD_OUT.items():
        table = scores(last[last["task"] == name])
        rows.append(
            [f"{name}: {words}", *(_points(overall(table, "hacpo", other)) for other in others)]
        )
    return _markdown(header, rows)


def course_table(evaluations: pd.DataFrame, methods: Sequence[str]) -> str:
    """Accuracy after so many steps, mean over agents, settings and held-out sets."""
    steps = sorted(step for step in evaluations["step"].unique() if step)
    tables = [scores(evaluations[evaluations["step"] == step]) for step in steps]
    header = ["method", *(f"{step} steps" for step in steps)]
    return _markdown(
        header, [[NAMES[m], *(level(table, m).points() for table in tables)] for m in methods]
    )


def question_table(last: pd.DataFrame, question: Question, grid: Grid) -> str:
    """Accuracy of every method and what HACPO has more at the same learning rates and seeds.

    Args:
        last: rows of the question after training, by setting.
    """
    columns = [(setting, a) for setting in question.settings for a in grid.settings[setting]]
    names = [f"{setting}: {agent}" for setting, agent in columns]
    header = ["learning rate", "method", *names, "mean", "HACPO − method"]
    rows = []
    tried = [last[last["learning_rate"] == rate] for rate in question.learning_rates]
    for chosen in tried or [last]:
        table = scores(chosen)
        for method in question.methods:
            own = chosen[chosen["method"] == method]["learning_rate"].iloc[0]
            rows.append(
                [
                    f"{own:g}",
                    NAMES[method],
                    *(over_seeds(table.loc[(method, *c)].tolist()).points() for c in columns),
                    level(table, method).points(),
                    "" if method == "hacpo" else _points(overall(table, "hacpo", method)),
                ]
            )
    return _markdown(header, rows)


def ablation_table(last: pd.DataFrame, grid: Grid, methods: Sequence[str]) -> str:
    """What each variant has more than HACPO, paired by seed, in percentage points."""
    chosen = last[
        last["setting"].isin(grid.ablations.settings) & last["seed"].isin(grid.ablations.seeds)
    ]
    table = scores(chosen)
    columns = [(setting, a) for setting in grid.ablations.settings for a in grid.settings[setting]]
    header = ["variant − HACPO", *(f"{setting}: {agent}" for setting, agent in columns), "mean"]
    rows = [
        [
            NAMES[method],
            *(_points(difference(table, method, "hacpo", *column)) for column in columns),
            _points(overall(table, method, "hacpo")),
        ]
        for method in methods
    ]
    return _markdown(header, rows)


def search_table(tried: pd.DataFrame) -> str:
    """Accuracy on the tuning problems of every learning rate, mean over the agents."""
    means = tried.pivot_table(
        index="method", columns="learning_rate", values="accuracy", sort=False
    )
    header = ["method", *(f"{rate:g}" for rate in means.columns)]
    rows = []
    for method, values in means.iterrows():
        best = values.max()
        cells = [f"**{v:.3f}**" if v == best else f"{v:.3f}" for v in values]
        rows.append([NAMES[str(method)], *cells])
    return _markdown(header, rows)


def _accuracies(rows: pd.DataFrame) -> list[str]:
    """One cell per held-out set, then their mean with its interval over seeds."""
    by_seed = rows.pivot_table(index="seed", columns="task", values="accuracy")[list(HELD_OUT)]
    mean = over_seeds(by_seed.mean(axis=1).tolist())
    return [*(f"{100 * value:.1f}" for value in by_seed.mean()), mean.points()]


def _points(interval: Interval) -> str:
    return interval.points(signed=True)


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)

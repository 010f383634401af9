"""From the runs of a grid to the comparisons that the tables and figures show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from studies.grid import ALONE
from studies.statistics import Interval, over_seeds

__all__ = ["by_setting", "difference", "final", "level", "overall", "scores"]


def by_setting(found: pd.DataFrame, settings: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Rows of `outcomes`, those of an agent by itself once for every setting that it is in.

    Args:
        settings: those of interest, with their agents.
    """
    parts = [found[found["setting"].isin(settings)]]
    alone = found[found["setting"] == ALONE]
    for setting, agents in settings.items():
        parts.append(alone[alone["agent"].isin(agents)].assign(setting=setting))
    return pd.concat(parts, ignore_index=True)


def final(evaluations: pd.DataFrame) -> pd.DataFrame:
    """The rows of the last evaluation of each run."""
    return evaluations[evaluations["step"] == evaluations["step"].max()]


def scores(last: pd.DataFrame) -> pd.Series:
    """Mean accuracy over the held-out sets, by method, setting, agent and seed."""
    return last.groupby(["method", "setting", "agent", "seed"])["accuracy"].mean()


def difference(table: pd.Series, method: str, other: str, setting: str, agent: str) -> Interval:
    """What a method has more than another, paired by seed, for one agent in one setting.

    Args:
        table: see `scores`. Seeds that only one of the two has are left out.
    """
    return over_seeds(_paired(table, method, other).loc[setting, agent].tolist())


def level(table: pd.Series, method: str) -> Interval:
    """What a method reaches, mean over the agents of each setting, then over the settings.

    Args:
        table: see `scores`.
    """
    return over_seeds(_by_seed(table.loc[method]).tolist())


def overall(table: pd.Series, method: str, other: str) -> Interval:
    """Likewise, mean over the agents of each setting, then over the settings, seed by seed."""
    return over_seeds(_by_seed(_paired(table, method, other)).tolist())


def _by_seed(values: pd.Series) -> pd.Series:
    """Mean over the agents of each setting, then over the settings."""
    return values.groupby(["setting", "seed"]).mean().groupby("seed").mean()


def _paired(table: pd.Series, method: str, other: str) -> pd.Series:
    """Differences by setting, agent and seed, where both were run."""
    return (table.loc[method] - table.loc[other]).dropna()

"""The settings of the four mechanisms of HACPO, and of sharing rules of the user's."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hacrl.config.bounds import Count
from hacrl.config.strict import FunctionName, Strict


class Capability(Strict):
    """Capability P̂ and its ratio ω (Eq. 5-7)."""

    metric: Literal["mean_reward", "positive_rate"] = "mean_reward"
    window: Count = 5
    """K, the steps over which the capability is averaged."""
    max_ratio: float = Field(default=10.0, ge=1.0, le=1e6)
    """ω is kept within [1/max_ratio, max_ratio]."""


class Advantage(Strict):
    """The capability-aware advantage and the discrepancy coefficient (Eq. 8-10)."""

    capability_aware: bool = True
    """Scale the peers' rewards by ω in the baseline; off: the plain mean."""
    discrepancy: bool = True
    """Multiply the advantage of a peer's response by ω(source, learner)."""
    cross_baseline: Literal["source", "learner"] = "source"
    guard: bool = True
    """Use the own mean where ω lifts the baseline out of the range of rewards."""
    epsilon: float = Field(default=1e-6, ge=0.0, le=1e6)
    """Added to the standard deviation σ of the rewards, in units of reward. Rewards that differ by
    no more than rounding count as equal, and no advantage is beyond ±1,000, whatever this is."""


class Ratio(Strict):
    """Importance ratio and exponential reweighting (Eq. 11-12)."""

    level: Literal["sequence", "token"] = "sequence"
    length: Literal["source", "own"] = "source"
    alpha: float = Field(default=1.0, ge=0.0, le=7.0)
    """α. The upper bound keeps exp((1+α)·10) finite in single precision."""


class Clip(Strict):
    """Clipping of own and cross ratios (Eq. 13-14)."""

    own_low: float = Field(default=3e-4, ge=0.0, le=1e6)
    own_high: float = Field(default=4e-4, ge=0.0, le=1e6)
    cross: Literal["stepwise", "own", "none"] = "stepwise"
    delta: float = Field(default=0.2, ge=0.0, le=1.0)
    """δ. The lower bound of cross ratios starts at 1 − δ."""
    delta_step: float = Field(default=0.025, ge=0.0, le=1.0)
    """δ_step, by which the lower bound rises with every optimizer update of a step."""


class PythonRule(Strict):
    """A rule of the user's, of which responses a learner uses and with what advantage."""

    type: Literal["python"] = "python"
    function: FunctionName
    """`module:function`, importable from the folder in which the run is started."""

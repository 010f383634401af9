"""Agent-capability-aware advantage and discrepancy coefficient (Eq. 8-10).

Shape suffixes: K learners and J sources (both range over the n agents), P prompts, G samples.
Everything is double precision: there are few numbers, and rewards may differ by little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from hacrl.algorithm.base import JointSet, Judgement

__all__ = [
    "LIMIT",
    "Advantages",
    "Baselines",
    "CapabilityAware",
    "advantages",
    "group_metrics",
    "joint_baselines",
]

_ROUNDING = 1e-9
"""A baseline beyond the range of rewards by less than this share of it is at its edge."""
_NOISE = 1e-12
"""Rewards that differ by no more than this share of their size are equal: double precision has
2e-16, and a reward may be a sum."""
LIMIT = 1e3
"""Largest size of (R − μ̂) / (σ + ε). With the guard it is below √(2(n−1)) for n rewards."""


@dataclass(frozen=True, slots=True)
class Baselines:
    """What each learner compares the responses to a prompt with.

    Args:
        mean_KP: μ̂(k).
        std_KP: σ, the unbiased standard deviation of the joint rewards; 0 without two of them.
        own_KP: mean of the learner's own rewards; NaN if none was scored.
        signal_KP: whether the joint rewards differ, by more than rounding.
        own_signal_KP: whether the learner's own rewards differ.
        guarded_KP: whether the guard replaced μ̂(k).
    """

    mean_KP: Tensor
    std_KP: Tensor
    own_KP: Tensor
    signal_KP: Tensor
    own_signal_KP: Tensor
    guarded_KP: Tensor


@dataclass(frozen=True, slots=True)
class Advantages:
    """Advantages as the learners use them.

    Args:
        value_KJPG: advantage of source j's response for learner k, the discrepancy coefficient
            included. 0 where unscored, without signal, or where k does not learn from j.
        baselines: how they came about.
    """

    value_KJPG: Tensor
    baselines: Baselines


def joint_baselines(
    rewards_JPG: Tensor, omega_KJ: Tensor, member_KJ: Tensor, guard: bool
) -> Baselines:
    """Baseline and spread of every learner's joint set.

    μ̂(k) = 1/(nG) Σ_j Σ_i ω(k,j)·R(y_i(j)), Eq. 8, over the scored responses of the agents that
    learner k learns from, itself included.

    Args:
        rewards_JPG: NaN is unscored.
        omega_KJ: ω(k,j); all ones for the plain group mean.
        member_KJ: whether j's responses are in k's joint set; true on the diagonal.
        guard: where μ̂(k) lies outside the range of the joint rewards, use k's own mean, so that
            scaling alone never punishes the best response nor rewards the worst.
    """
    rewards_JPG, omega_KJ = rewards_JPG.double(), omega_KJ.double()
    scored_JPG = ~rewards_JPG.isnan()
    value_JPG = rewards_JPG.nan_to_num(nan=0.0)
    joint_KJPG = member_KJ[:, :, None, None] & scored_JPG
    count_KP = joint_KJPG.sum(dim=(1, 3))

    inf = torch.inf
    lower_JP = torch.where(scored_JPG, value_JPG, inf).amin(dim=2)
    upper_JP = torch.where(scored_JPG, value_JPG, -inf).amax(dim=2)
    lowest_KP = torch.where(member_KJ[:, :, None], lower_JP, inf).amin(dim=1)
    highest_KP = torch.where(member_KJ[:, :, None], upper_JP, -inf).amax(dim=1)
    plain_KP = (joint_KJPG * value_JPG).sum(dim=(1, 3)) / count_KP
    deviation_KJPG = (value_JPG - plain_KP[:, None, :, None]) * joint_KJPG
    variance_KP = deviation_KJPG.square().sum(dim=(1, 3)) / (count_KP - 1).clamp(min=1)

    own_count_KP = scored_JPG.sum(dim=2)
    own_KP = value_JPG.sum(dim=2) / own_count_KP
    mean_KP = (omega_KJ[:, :, None, None] * joint_KJPG * value_JPG).sum(dim=(1, 3)) / count_KP

    spread_KP = highest_KP - lowest_KP
    outside_KP = torch.maximum(mean_KP - highest_KP, lowest_KP - mean_KP)
    guarded_KP = (outside_KP > _ROUNDING * spread_KP) & (spread_KP > 0) & guard
    if guard:  # at the edge, rounding must not make the best response look worse than the baseline
        mean_KP = torch.where(spread_KP > 0, mean_KP.clamp(lowest_KP, highest_KP), mean_KP)
    std_KP = variance_KP.nan_to_num(nan=0.0).sqrt()  # 0 where the squares are too small
    fallback_KP = torch.where(own_count_KP > 0, own_KP, plain_KP)
    return Baselines(
        mean_KP=torch.where(guarded_KP, fallback_KP, mean_KP),
        std_KP=std_KP,
        own_KP=own_KP,
        signal_KP=_differ(lowest_KP, highest_KP) & (std_KP > 0),
        own_signal_KP=_differ(lower_JP, upper_JP),
        guarded_KP=guarded_KP,
    )


def _differ(lowest: Tensor, highest: Tensor) -> Tensor:
    size = torch.maximum(lowest.abs(), highest.abs())
    return (highest - lowest > _NOISE * size) & (highest > lowest)


def advantages(
    rewards_JPG: Tensor,
    omega_KJ: Tensor,
    member_KJ: Tensor,
    *,
    capability_aware: bool,
    discrepancy: bool,
    cross_baseline: Literal["source", "learner"],
    guard: bool,
    epsilon: float,
) -> Advantages:
    """Advantages of all responses for all learners.

    Own responses: A(k) = (R − μ̂(k)) / (σ + ε), Eq. 9, within ±`LIMIT`. Source j's responses for
    learner k: Ã = ω(j,k)·A, Eq. 10, with A = A(j) (`source`, main text) or with μ̂(k) (`learner`,
    Appendix E).

    Args:
        rewards_JPG: NaN is unscored.
        omega_KJ: ω(k,j).
        member_KJ: whether k learns from j; true on the diagonal.
        capability_aware: scale peers' rewards by ω in the baseline; else the plain mean.
        discrepancy: apply the coefficient ω(j,k) to peers' responses; else 1.
        cross_baseline: whose baseline a peer's response is compared with.
        guard: see `joint_baselines`.
        epsilon: ε, in units of reward.
    """
    ones_KJ = torch.ones_like(omega_KJ)
    baselines = joint_baselines(
        rewards_JPG, omega_KJ if capability_aware else ones_KJ, member_KJ, guard
    )

    def compared_with(agent: int | slice) -> Tensor:
        """(R − μ̂) / (σ + ε) of all sources' responses, by one baseline or by each source's own."""
        mean, std = baselines.mean_KP[agent], baselines.std_KP[agent]
        scaled_JPG = (rewards_JPG.double() - mean[..., None]) / (std[..., None] + epsilon)
        scaled_JPG = scaled_JPG.clamp(-LIMIT, LIMIT)
        usable_JPG = baselines.signal_KP[agent][..., None] & ~rewards_JPG.isnan()
        return torch.where(usable_JPG, scaled_JPG, 0.0)

    by_source_JPG = compared_with(slice(None))
    coefficient_KJ = omega_KJ.double().T if discrepancy else ones_KJ.double()
    rows = []
    for k in range(len(omega_KJ)):
        value_JPG = by_source_JPG if cross_baseline == "source" else compared_with(k)
        value_JPG = value_JPG * coefficient_KJ[k][:, None, None]
        value_JPG[k] = by_source_JPG[k]
        rows.append(value_JPG * member_KJ[k][:, None, None])
    return Advantages(value_KJPG=torch.stack(rows), baselines=baselines)


@dataclass(frozen=True, slots=True)
class CapabilityAware:
    """Judges the responses of a step by `advantages`, which has the arguments."""

    capability_aware: bool = True
    discrepancy: bool = True
    cross_baseline: Literal["source", "learner"] = "source"
    guard: bool = True
    epsilon: float = 1e-6

    def __call__(self, joint: JointSet) -> Judgement:
        judged = advantages(
            joint.rewards_JPG,
            joint.omega_KJ,
            joint.member_KJ,
            capability_aware=self.capability_aware,
            discrepancy=self.discrepancy,
            cross_baseline=self.cross_baseline,
            guard=self.guard,
            epsilon=self.epsilon,
        )
        value_KJPG = torch.where(joint.member_KJ[:, :, None, None], judged.value_KJPG, math.nan)
        metrics = {name: _metrics(judged.baselines, k) for k, name in enumerate(joint.agents)}
        return Judgement(value_KJPG, metrics)


def group_metrics(joint: JointSet) -> dict[str, dict[str, Any]]:
    """For each learner, how many groups tell it anything: whatever it makes of them."""
    baselines = joint_baselines(
        joint.rewards_JPG, torch.ones_like(joint.omega_KJ), joint.member_KJ, guard=False
    )
    return {name: _groups(baselines, k) for k, name in enumerate(joint.agents)}


def _metrics(baselines: Baselines, k: int) -> dict[str, Any]:
    """What one learner's baselines were; see `docs/metrics.md`."""
    own_P = baselines.own_KP[k]
    bias_P = (baselines.mean_KP[k] - own_P)[~own_P.isnan()]
    return {
        "baseline_bias": float(bias_P.mean()) if len(bias_P) else None,
        "guard_rate": float(baselines.guarded_KP[k].double().mean()),
        **_groups(baselines, k),
    }


def _groups(baselines: Baselines, k: int) -> dict[str, Any]:
    signal_P = baselines.signal_KP[k]
    return {
        "groups": len(signal_P),
        "groups_without_signal": int((~signal_P).sum()),
        "groups_with_signal_from_peers_only": int((signal_P & ~baselines.own_signal_KP[k]).sum()),
    }

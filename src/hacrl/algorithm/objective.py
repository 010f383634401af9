"""The objective of one learner, one term per sequence (Eq. 11-14 and 47-53).

J(k) = mean over own responses of min(s·A, clip(s)·A)
     + Σ over peers of the mean over their responses of clip(s)·stopgrad(s)^α·ω(j,k)·A

Shape suffixes: R rows (sequences), T tokens. Advantages already hold ω(j,k) for peers' rows. All
functions return terms to be maximised; the loss is minus their mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

__all__ = [
    "LOG_RATIO_LIMIT",
    "Rows",
    "Terms",
    "cross_term",
    "kl_term",
    "limited_ratio",
    "objective",
    "own_term",
    "sequence_log_ratio",
    "stepwise_bounds",
    "token_term",
]

LOG_RATIO_LIMIT = 10.0
"""Largest size of a log ratio before exp."""


def sequence_log_ratio(
    logprob_new_R: Tensor,
    logprob_old_R: Tensor,
    length_new_R: Tensor,
    length_old_R: Tensor,
    convention: Literal["source", "own"],
) -> Tensor:
    """log s(k,j) = (log π_k(y) − log π_j_old(y)) / |y|, Eq. 11, in nats per token.

    Args:
        logprob_new_R: log π_k(y), summed over the learner's tokens.
        logprob_old_R: log π_j_old(y), summed over the source's tokens.
        length_new_R: tokens of the learner's encoding.
        length_old_R: tokens that the source produced.
        convention: `source` divides both by the source's length; `own` divides each by its own.
    """
    if convention == "source":
        return (logprob_new_R - logprob_old_R) / length_old_R
    return logprob_new_R / length_new_R - logprob_old_R / length_old_R


def limited_ratio(log_ratio: Tensor) -> Tensor:
    """exp of a log ratio kept within ±`LOG_RATIO_LIMIT`; no gradient beyond the limit."""
    return log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()


def own_term(ratio: Tensor, advantage: Tensor, low: float, high: float) -> Tensor:
    """min(s·A, clip(s, 1 − ε_low, 1 + ε_high)·A), the clipped objective of PPO and GSPO."""
    return torch.minimum(ratio * advantage, ratio.clamp(1.0 - low, 1.0 + high) * advantage)


def token_term(
    log_ratio_RT: Tensor, mask_RT: Tensor, advantage_R: Tensor, low: float, high: float
) -> Tensor:
    """GRPO: the mean over a response's tokens of the clipped objective of each token's ratio."""
    term_RT = own_term(limited_ratio(log_ratio_RT), advantage_R[:, None], low, high)
    return (term_RT * mask_RT).sum(dim=1) / mask_RT.sum(dim=1)


def stepwise_bounds(delta: float, delta_step: float, update: int) -> tuple[float, float]:
    """[1 − δ + m·δ_step, 1], Eq. 13-14, the lower bound at most 1.

    Args:
        update: m, optimizer updates already made in this step; micro-batches do not count.
    """
    return min(1.0 - delta + update * delta_step, 1.0), 1.0


def cross_term(
    ratio_R: Tensor, advantage_R: Tensor, alpha: float, bounds: tuple[float, float] | None
) -> Tensor:
    """clip(s)·stopgrad(s)^α·Ã of a peer's response, Eq. 12-14.

    Outside the bounds there is no gradient; inside it flows through the plain s alone.

    Args:
        alpha: α ≥ 0, strength of the exponential reweighting; 0 is none.
        bounds: of `stepwise_bounds`; None for no clipping at all.
    """
    clipped_R = ratio_R if bounds is None else ratio_R.clamp(*bounds)
    return clipped_R * ratio_R.detach().pow(alpha) * advantage_R


def kl_term(logprob_RT: Tensor, reference_RT: Tensor, mask_RT: Tensor) -> Tensor:
    """KL(π ‖ π_ref) per token by the low-variance estimator r − 1 − log r, r = π_ref/π.

    See Schulman, "Approximating KL divergence" (k3). Returns the mean over each response's tokens.
    """
    log_r_RT = (reference_RT - logprob_RT).clamp(max=LOG_RATIO_LIMIT)
    estimate_RT = log_r_RT.expm1() - log_r_RT  # exp(x) − 1 − x would cancel for close policies
    return (estimate_RT * mask_RT).sum(dim=1) / mask_RT.sum(dim=1)


@dataclass(frozen=True, slots=True)
class Rows:
    """A batch of responses to learn from, own and peers' mixed.

    Args:
        logprob_RT: log π_k(y_t) of the learner now, 0 outside the mask.
        mask_RT: True on response tokens in the learner's encoding, the end token included.
        old_logprob_R: log π_j_old(y), summed over the author's tokens.
        old_length_R: tokens that the author produced.
        advantage_R: A, or Ã for peers' rows.
        own_R: whether the learner is the author.
        old_logprob_RT: log π_old(y_t) of own rows token by token; needed at token level alone.
    """

    logprob_RT: Tensor
    mask_RT: Tensor
    old_logprob_R: Tensor
    old_length_R: Tensor
    advantage_R: Tensor
    own_R: Tensor
    old_logprob_RT: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """The objective of each row, and what clipping did to it.

    Args:
        value_R: to be maximised.
        log_ratio_R: log of the sequence ratio in nats per token, before any limit.
        below_R: 1 where the ratio is below its clip interval (at token level: share of tokens).
        above_R: likewise above.
        limited_R: whether a ratio of the row was beyond the limit.
        teaches_R: whether the row has a gradient.
    """

    value_R: Tensor
    log_ratio_R: Tensor
    below_R: Tensor
    above_R: Tensor
    limited_R: Tensor
    teaches_R: Tensor


def objective(
    rows: Rows,
    *,
    level: Literal["sequence", "token"],
    length: Literal["source", "own"],
    alpha: float,
    own_clip: tuple[float, float],
    cross_clip: Literal["stepwise", "own", "none"],
    cross_bounds: tuple[float, float],
) -> Terms:
    """The terms of J(k), Eq. 47-53, of a batch of rows.

    Args:
        level: ratio per sequence, or per token (GRPO; own rows only).
        length: see `sequence_log_ratio`.
        alpha: α.
        own_clip: ε_low, ε_high.
        cross_clip: how peers' ratios are clipped: `stepwise` to `cross_bounds`, inside a min like
            own ones (Naive), or not at all.
        cross_bounds: of `stepwise_bounds`.
    """
    mask_RT, advantage_R, own_R = rows.mask_RT, rows.advantage_R, rows.own_R
    log_ratio_R = sequence_log_ratio(
        rows.logprob_RT.sum(dim=1),
        rows.old_logprob_R,
        mask_RT.sum(dim=1),
        rows.old_length_R,
        length,
    )
    if level == "token":
        if rows.old_logprob_RT is None or not bool(own_R.all()):
            raise ValueError("token-level ratios need own rows with token log-probabilities")
        log_ratio_RT = rows.logprob_RT - rows.old_logprob_RT
        value_R = token_term(log_ratio_RT, mask_RT, advantage_R, *own_clip)
        below_RT, above_RT = _outside(log_ratio_RT, _around_one(own_clip))
        limited_RT = (log_ratio_RT.abs() > LOG_RATIO_LIMIT) & mask_RT
        clipped_RT = torch.where(advantage_R[:, None] > 0, above_RT, below_RT)
        lost_RT = clipped_RT | limited_RT | ~mask_RT
        share = mask_RT / mask_RT.sum(dim=1, keepdim=True)
        return Terms(
            value_R=value_R,
            log_ratio_R=log_ratio_R.detach(),
            below_R=(below_RT * share).sum(dim=1),
            above_R=(above_RT * share).sum(dim=1),
            limited_R=limited_RT.any(dim=1),
            teaches_R=(advantage_R != 0) & ~lost_RT.all(dim=1),
        )

    ratio_R = limited_ratio(log_ratio_R)
    clipped_in_min_R = own_R | (cross_clip == "own")
    value_R = torch.where(
        clipped_in_min_R,
        own_term(ratio_R, advantage_R, *own_clip)
        * torch.where(own_R, 1.0, ratio_R.detach().pow(alpha)),
        cross_term(ratio_R, advantage_R, alpha, cross_bounds if cross_clip != "none" else None),
    )
    in_min_below_R, in_min_above_R = _outside(log_ratio_R, _around_one(own_clip))
    cross_below_R, cross_above_R = _outside(
        log_ratio_R, cross_bounds if cross_clip != "none" else (0.0, torch.inf)
    )
    below_R = torch.where(clipped_in_min_R, in_min_below_R, cross_below_R)
    above_R = torch.where(clipped_in_min_R, in_min_above_R, cross_above_R)
    # The min leaves open the side on which the clipped value would be the larger one.
    clipped_R = torch.where(
        clipped_in_min_R,
        torch.where(advantage_R > 0, above_R, below_R),
        below_R | above_R,
    )
    limited_R = log_ratio_R.abs() > LOG_RATIO_LIMIT
    return Terms(
        value_R=value_R,
        log_ratio_R=log_ratio_R.detach(),
        below_R=below_R.float(),
        above_R=above_R.float(),
        limited_R=limited_R,
        teaches_R=(advantage_R != 0) & ~clipped_R & ~limited_R,
    )


def _around_one(clip: tuple[float, float]) -> tuple[float, float]:
    return 1.0 - clip[0], 1.0 + clip[1]


def _outside(log_ratio: Tensor, bounds: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """Whether a ratio lies below, and whether above, its bounds."""
    ratio = limited_ratio(log_ratio.detach())
    return ratio < bounds[0], ratio > bounds[1]

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
    "SequenceLevel",
    "Terms",
    "TokenLevel",
    "kl_term",
    "limited_ratio",
    "sequence_log_ratio",
    "stepwise_bounds",
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


def stepwise_bounds(delta: float, delta_step: float, update: int) -> tuple[float, float]:
    """[1 − δ + m·δ_step, 1], Eq. 13-14, the lower bound at most 1.

    Args:
        update: m, optimizer updates already made in this step; micro-batches do not count.
    """
    return min(1.0 - delta + update * delta_step, 1.0), 1.0


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

    def log_ratio(self, convention: Literal["source", "own"]) -> Tensor:
        """log s of every row, see `sequence_log_ratio`."""
        return sequence_log_ratio(
            self.logprob_RT.sum(dim=1),
            self.old_logprob_R,
            self.mask_RT.sum(dim=1),
            self.old_length_R,
            convention,
        )


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


@dataclass(frozen=True, slots=True)
class SequenceLevel:
    """One ratio per response: own ones clipped as in GSPO, peers' as in HACPO (Eq. 11-14).

    Own: min(s·A, clip(s, 1 − ε_low, 1 + ε_high)·A). Peers': clip(s)·stopgrad(s)^α·Ã, which has no
    gradient outside the interval; inside it flows through the plain s alone.

    Args:
        own_clip: ε_low, ε_high.
        cross_clip: how peers' ratios are clipped: `stepwise` to `stepwise_bounds`, inside a min
            like own ones (naive sharing), or not at all.
        delta, delta_step: of `stepwise_bounds`.
        alpha: α ≥ 0, strength of the exponential reweighting; 0 is none.
        length: see `sequence_log_ratio`.
    """

    own_clip: tuple[float, float]
    cross_clip: Literal["stepwise", "own", "none"] = "stepwise"
    delta: float = 0.2
    delta_step: float = 0.025
    alpha: float = 1.0
    length: Literal["source", "own"] = "source"

    def __call__(self, rows: Rows, update: int) -> Terms:
        own_R, advantage_R = rows.own_R, rows.advantage_R
        log_ratio_R = rows.log_ratio(self.length)
        ratio_R = limited_ratio(log_ratio_R)
        around_one = (1.0 - self.own_clip[0], 1.0 + self.own_clip[1])
        cross = {
            "stepwise": stepwise_bounds(self.delta, self.delta_step, update),
            "own": around_one,
            "none": (0.0, torch.inf),
        }[self.cross_clip]
        # Peers' ratios are clipped on both sides, whatever the sign of the advantage.
        in_min_R = own_R | (self.cross_clip == "own")
        low_R, high_R = (
            torch.where(own_R, ratio_R.new_tensor(own), ratio_R.new_tensor(peers))
            for own, peers in zip(around_one, cross, strict=True)
        )
        weight_R = torch.where(own_R, 1.0, ratio_R.detach().pow(self.alpha))
        clipped_R = ratio_R.clamp(low_R, high_R) * weight_R * advantage_R
        least_R = torch.minimum(ratio_R * weight_R * advantage_R, clipped_R)
        below_R, above_R = ratio_R.detach() < low_R, ratio_R.detach() > high_R
        # The min leaves open the side on which the clipped value would be the larger one.
        in_force_R = torch.where(advantage_R > 0, above_R, below_R)
        lost_R = torch.where(in_min_R, in_force_R, below_R | above_R)
        limited_R = log_ratio_R.abs() > LOG_RATIO_LIMIT
        return Terms(
            value_R=torch.where(in_min_R, least_R, clipped_R),
            log_ratio_R=log_ratio_R.detach(),
            below_R=below_R.float(),
            above_R=above_R.float(),
            limited_R=limited_R,
            teaches_R=(advantage_R != 0) & ~lost_R & ~limited_R,
        )


@dataclass(frozen=True, slots=True)
class TokenLevel:
    """One ratio per token, as in GRPO: the mean over a response's tokens of the clipped objective.

    Args:
        own_clip: ε_low, ε_high.
        length: see `sequence_log_ratio`; for the ratio that is reported.
    """

    own_clip: tuple[float, float]
    length: Literal["source", "own"] = "source"

    def __call__(self, rows: Rows, update: int) -> Terms:
        """The terms of own rows.

        Raises:
            ValueError: there are peers' rows, or own ones come without token log-probabilities.
        """
        if rows.old_logprob_RT is None or not bool(rows.own_R.all()):
            raise ValueError("token-level ratios need own rows with token log-probabilities")
        low, high = 1.0 - self.own_clip[0], 1.0 + self.own_clip[1]
        advantage_R1 = rows.advantage_R[:, None]
        share_RT = rows.mask_RT / rows.mask_RT.sum(dim=1, keepdim=True)
        log_ratio_RT = rows.logprob_RT - rows.old_logprob_RT
        ratio_RT = limited_ratio(log_ratio_RT)
        term_RT = torch.minimum(ratio_RT * advantage_R1, ratio_RT.clamp(low, high) * advantage_R1)
        below_RT, above_RT = ratio_RT.detach() < low, ratio_RT.detach() > high
        limited_RT = (log_ratio_RT.abs() > LOG_RATIO_LIMIT) & rows.mask_RT
        lost_RT = torch.where(advantage_R1 > 0, above_RT, below_RT) | limited_RT | ~rows.mask_RT
        return Terms(
            value_R=(term_RT * rows.mask_RT).sum(dim=1) / rows.mask_RT.sum(dim=1),
            log_ratio_R=rows.log_ratio(self.length).detach(),
            below_R=(below_RT * share_RT).sum(dim=1),
            above_R=(above_RT * share_RT).sum(dim=1),
            limited_R=limited_RT.any(dim=1),
            teaches_R=(rows.advantage_R != 0) & ~lost_RT.all(dim=1),
        )

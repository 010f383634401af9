"""What a sample of responses says about an agent: estimators in closed form, and their intervals.

Problems are the independent units everywhere. An interval says how sure a figure is for these
weights on problems like these, not how training would vary with another seed.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

__all__ = [
    "Estimate",
    "bootstrap_difference",
    "estimate",
    "majority",
    "mean_of_estimates",
    "normal",
    "pass_at",
    "wilson",
]

_Z95 = statistics.NormalDist().inv_cdf(0.975)
_RESAMPLES = 10_000
_AT_ONCE = 2_000_000
"""Drawn indices that the bootstrap holds at any one time."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over problems with its 95% interval.

    Args:
        value: the mean.
        low: lower end of the interval.
        high: upper end.
        method: how the interval was made.
    """

    value: float
    low: float
    high: float
    method: Literal["wilson", "normal", "combined", "bootstrap"]

    @property
    def half_width(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of one value in [0, 1] per problem; at least one.

    Wilson's interval where every value is 0 or 1 (one response per problem, best@k), which stays
    honest near both ends and for few problems; the normal interval over problem means, cut to
    [0, 1], everywhere else.
    """
    if all(value in (0, 1) for value in values):
        return wilson(round(sum(values)), len(values))
    made = normal(values)
    return Estimate(made.value, max(made.low, 0.0), min(made.high, 1.0), "normal")


def wilson(right: int, total: int) -> Estimate:
    """A share of right answers with Wilson's score interval."""
    share, z2 = right / total, _Z95**2
    centre = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = (
        _Z95 / (1 + z2 / total) * math.sqrt(share * (1 - share) / total + z2 / (4 * total * total))
    )
    # At 0 and at total, rounding would leave an end a little off.
    low = 0.0 if right == 0 else centre - half
    high = 1.0 if right == total else centre + half
    return Estimate(share, low, high, "wilson")


def normal(values: Sequence[float]) -> Estimate:
    """Mean ± 1.96 standard errors, from one value per problem; one alone has no width."""
    mean = statistics.fmean(values)
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return Estimate(mean, mean - _Z95 * error, mean + _Z95 * error, "normal")


def mean_of_estimates(parts: Sequence[Estimate]) -> Estimate:
    """The unweighted mean over benchmarks, which are independent of each other.

    Each end of the interval is as far from the mean as the square root of the summed squares of
    the parts' distances, divided by their number (Newcombe's square-and-add). With normal parts
    that is the normal interval, and parts at 0 or 1 do not pretend to be certain.
    """
    mean = statistics.fmean(part.value for part in parts)
    below = math.hypot(*(part.value - part.low for part in parts)) / len(parts)
    above = math.hypot(*(part.high - part.value for part in parts)) / len(parts)
    return Estimate(mean, mean - below, mean + above, "combined")


def pass_at(k: int, right: int, total: int) -> float:
    """pass@k of one problem from `total` ≥ k responses: 1 − C(total−right, k) / C(total, k).

    Unbiased (Chen et al. 2021): the chance that k of the responses, drawn without replacement, hold
    a right one. At k = total it is best@k.
    """
    return 1.0 - math.comb(total - right, k) / math.comb(total, k)


def majority(answers: Sequence[str | None], right: Mapping[str, bool]) -> float:
    """maj@k of one problem: whether the answer that most of the k responses give is right.

    Answers are equal if spelt the same; responses without an answer do not vote, and if none
    votes the result is 0. A tie counts with the share of the tied answers that are right, which is
    what breaking it at random would give on average, and does not depend on the order.

    Args:
        right: for each answer, whether it is right.
    """
    votes = Counter(answer for answer in answers if answer is not None)
    if not votes:
        return 0.0
    most = max(votes.values())
    tied = [answer for answer, count in votes.items() if count == most]
    return sum(right[answer] for answer in tied) / len(tied)


def bootstrap_difference(
    values: Sequence[float], others: Sequence[float], seed: int = 0
) -> Estimate:
    """Mean of values − others on the same problems, with a paired bootstrap interval.

    Problems are drawn with replacement, 10,000 times; the interval holds the middle 95% of the
    mean differences.
    """
    differences = np.asarray(values, dtype=float) - np.asarray(others, dtype=float)
    generator = np.random.default_rng(seed)
    size = len(differences)
    rounds = max(1, min(_RESAMPLES, _AT_ONCE // size))
    means: list[float] = []
    while len(means) < _RESAMPLES:
        count = min(rounds, _RESAMPLES - len(means))
        drawn = generator.integers(0, size, (count, size))
        means += differences[drawn].mean(axis=1).tolist()
    low, high = np.quantile(means, (0.025, 0.975))
    return Estimate(float(differences.mean()), float(low), float(high), "bootstrap")

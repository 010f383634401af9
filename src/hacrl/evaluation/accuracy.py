"""Accuracy on held-out problems with an interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from hacrl.fleet import Fleet
from hacrl.loop import verify
from hacrl.records import Outcome, Prompt
from hacrl.verify import VerifierPool

__all__ = ["Accuracy", "evaluate", "paired_difference"]

_Z95 = statistics.NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """A mean over problems with its 95% interval.

    The interval is mean ± 1.96 standard errors, problems being the independent units: it says how
    sure the figure is for these weights, not how training would vary with another seed.
    """

    mean: float
    half_width: float

    @classmethod
    def over(cls, values: Sequence[float]) -> Accuracy:
        """From one value per problem; at least two."""
        error = statistics.stdev(values) / math.sqrt(len(values))
        return cls(statistics.fmean(values), _Z95 * error)


def evaluate(
    fleet: Fleet,
    prompts: Sequence[Prompt],
    verifiers: VerifierPool,
    *,
    samples: int,
    occasion: str,
) -> dict[str, list[float]]:
    """Share of right answers among `samples` sampled ones, per agent and problem.

    Sampling is at the training temperature and leaves every random state as it was.
    """
    rollouts = fleet.sample(prompts, samples, occasion=occasion)
    pool = verify(0, prompts, samples, rollouts, verifiers)
    accuracies = {}
    for agent in pool.agents:
        right = [row.verdict.outcome is Outcome.RIGHT for row in pool.of(agent)]
        accuracies[agent] = [
            sum(right[i : i + samples]) / samples for i in range(0, len(right), samples)
        ]
    return accuracies


def paired_difference(values: Sequence[float], others: Sequence[float]) -> Accuracy:
    """Mean difference on the same problems, with its 95% interval."""
    return Accuracy.over([a - b for a, b in zip(values, others, strict=True)])

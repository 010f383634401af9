"""What an algorithm is: how it judges the responses of a step, and what it makes of a learner's.

Shape suffixes: K learners and J sources (both range over the n agents of a step), P prompts,
G samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from hacrl.algorithm.objective import Rows, Terms

__all__ = ["Algorithm", "JointSet", "Judgement"]


@dataclass(frozen=True, slots=True)
class JointSet:
    """What is known of the responses of one step: numbers, never texts.

    Args:
        agents: names, in the order of the axes K and J.
        rewards_JPG: in double precision; NaN where a response is missing or could not be scored.
        omega_KJ: ω(k,j) = P̂(k) / P̂(j), Eq. 7.
        member_KJ: whether learner k may learn from source j; true on the diagonal.
    """

    agents: tuple[str, ...]
    rewards_JPG: Tensor
    omega_KJ: Tensor
    member_KJ: Tensor


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the responses of one step are worth to each learner.

    Args:
        value_KJPG: advantage of source j's responses for learner k. NaN: k does not learn from that
            response at all. A response of advantage 0 does not move k either, but counts in the
            means over its mini-batch.
        metrics: further metrics of the step, by learner; see `docs/metrics.md`. None is a gap.
    """

    value_KJPG: Tensor
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Algorithm:
    """How learners learn from the joint set of a step.

    Args:
        judge: which responses each learner uses, and their advantages. Called once a step, for all
            learners, where the rewards are.
        objective: the terms of a learner's objective, one for each row of a batch, to be maximised.
            Called by each learner, with the number of optimizer updates that it has made in the
            step.
        token_level: whether `objective` reads `Rows.old_logprob_RT`, which own rows alone have.
    """

    judge: Callable[[JointSet], Judgement]
    objective: Callable[[Rows, int], Terms]
    token_level: bool = False

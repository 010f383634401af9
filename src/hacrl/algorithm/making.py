"""The algorithm that a recipe names: a method of this package, or a rule of the user's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from hacrl.algorithm import methods
from hacrl.algorithm.advantages import CapabilityAware, group_metrics
from hacrl.algorithm.base import Algorithm, JointSet, Judgement
from hacrl.algorithm.objective import SequenceLevel, TokenLevel
from hacrl.errors import UserError

__all__ = ["Sections", "make_algorithm", "make_method", "with_rule"]

Sections = Mapping[str, Mapping[str, Any]]
"""`advantage`, `ratio` and `clip` of a recipe, as plain values."""


def make_method(name: str, sections: Sections) -> Algorithm:
    """A method of this package with the settings of a recipe."""
    module = import_module(f"{methods.__name__}.{name}")
    make: Callable[[Sections], Algorithm] = getattr(module, "make", make_algorithm)
    return make(sections)


def make_algorithm(sections: Sections) -> Algorithm:
    """What the sections say by themselves: HACPO, and whatever its switches make of it."""
    ratio, clip = sections["ratio"], sections["clip"]
    judge = CapabilityAware(**sections["advantage"])
    own_clip = (clip["own_low"], clip["own_high"])
    if ratio["level"] == "token":
        return Algorithm(judge, TokenLevel(own_clip, ratio["length"]), token_level=True)
    objective = SequenceLevel(
        own_clip=own_clip,
        cross_clip=clip["cross"],
        delta=clip["delta"],
        delta_step=clip["delta_step"],
        alpha=ratio["alpha"],
        length=ratio["length"],
    )
    return Algorithm(judge, objective)


def with_rule(algorithm: Algorithm, rule: Callable[[JointSet], Any], name: str) -> Algorithm:
    """An algorithm with another rule for the advantages.

    Args:
        rule: takes a `JointSet` and returns the advantages as a tensor [K, J, P, G], NaN where a
            learner does not use a response; or a `Judgement`, to add metrics.
        name: of the rule, for messages.

    Raises:
        UserError: the rule fails on a small example, or returns something else. So does `judge` of
            the result, later, in a step.
    """

    def judge(joint: JointSet) -> Judgement:
        try:
            result = rule(joint)
        # A user's function may raise anything.
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise UserError(f"method.function: {name} failed ({reason})") from error
        return _checked(result, joint, name)

    judge(_EXAMPLE)
    return replace(algorithm, judge=judge)


_EXAMPLE = JointSet(
    agents=("first", "second"),
    rewards_JPG=torch.tensor(
        [[[1.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [math.nan, 0.0]]], dtype=torch.float64
    ),
    omega_KJ=torch.tensor([[1.0, 0.5], [2.0, 1.0]], dtype=torch.float64),
    member_KJ=torch.ones(2, 2, dtype=torch.bool),
)


def _checked(result: Any, joint: JointSet, name: str) -> Judgement:
    judgement = result if isinstance(result, Judgement) else Judgement(result)
    values = judgement.value_KJPG
    n = len(joint.agents)
    shape = (n, n, *joint.rewards_JPG.shape[1:])
    if not isinstance(values, Tensor) or tuple(values.shape) != shape:
        size = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise UserError(
            f"method.function: {name} must return a tensor of advantages of the shape {shape} "
            f"(learners, sources, prompts, samples), it gave {size}"
        )
    if bool(values.isinf().any()):
        raise UserError(f"method.function: {name} returned an infinite advantage")
    # What could not be scored, and what may not be learned from, is used by no learner.
    allowed = joint.member_KJ[:, :, None, None] & ~joint.rewards_JPG.isnan()[None]
    used = torch.where(allowed, values.double(), math.nan)
    metrics = {
        agent: {
            "baseline_bias": None,
            "guard_rate": None,
            **groups,
            **judgement.metrics.get(agent, {}),
        }
        for agent, groups in group_metrics(joint).items()
    }
    return Judgement(used, metrics)

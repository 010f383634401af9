"""Sharing rules, as users write them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from hacrl.algorithm.advantages import CapabilityAware
from hacrl.algorithm.base import JointSet, Judgement


def as_hacpo(joint: JointSet) -> Judgement:
    """What the method of that name does."""
    return CapabilityAware()(joint)


def own_alone(joint: JointSet) -> Judgement:
    """Nobody uses a response of a peer's; with a metric."""
    judgement = CapabilityAware()(joint)
    value = torch.full_like(judgement.value_KJPG, math.nan)
    for k in range(len(joint.agents)):
        value[k, k] = judgement.value_KJPG[k, k]
    return Judgement(value, {name: {"alone": True} for name in joint.agents})


def too_few(joint: JointSet) -> Tensor:
    return joint.rewards_JPG


def infinite(joint: JointSet) -> Tensor:
    n = len(joint.agents)
    return torch.full((n, n, *joint.rewards_JPG.shape[1:]), math.inf)


def a_list(joint: JointSet) -> list[float]:
    return [0.0]


def fails(joint: JointSet) -> Tensor:
    raise RuntimeError("no idea")


def fails_later(joint: JointSet) -> Tensor:
    if joint.rewards_JPG.shape[1] != 2:
        raise RuntimeError("more prompts than in the example")
    return torch.zeros(2, 2, 2, 2)

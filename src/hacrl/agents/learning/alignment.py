"""Whether peers' responses pull a learner where its own do (Theorem 4.3).

The theorem: the gradients of J_hete and J_homo have a positive inner product. What is measured is
their cosine on a probe mini-batch, before the first update of a step, without changing anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hacrl.agents.learning.batching import mini_batches
from hacrl.agents.learning.learner import Learner
from hacrl.agents.learning.lessons import Lesson

__all__ = ["cosine", "measure_alignment", "probe"]

Gradient = Sequence[Tensor]
"""One tensor per trained parameter."""


def measure_alignment(
    learner: Learner, lessons: Sequence[Lesson], name: str, sources: Sequence[str], count: int
) -> dict[str, Any]:
    """Metrics `alignment` and `alignment_of_peers`; nothing for a learner without sources.

    Holds three gradients at a time: the own one, a source's, and the sum over the sources.

    Args:
        name: of the learner.
        sources: the peers that it learns from.
        count: M, own mini-batches a step.
    """
    if not sources:
        return {}
    own = learner.gradient(lessons, probe(lessons, name, count))
    total = [torch.zeros_like(part) for part in own]
    by_source = {}
    for source in sources:
        theirs = learner.gradient(lessons, probe(lessons, source, count))
        by_source[source] = cosine(own, theirs)
        for part, more in zip(total, theirs, strict=True):
            part += more
    return {"alignment": by_source, "alignment_of_peers": cosine(own, total)}


def probe(lessons: Sequence[Lesson], agent: str, count: int) -> list[int]:
    """The rows of one agent that are looked at: the first of M equal shares of the usable ones."""
    rows = [
        i
        for i, lesson in enumerate(lessons)
        if lesson.rollout.agent == agent and lesson.left_out is None
    ]
    return mini_batches(rows, {}, count, "own_first")[0]


def cosine(left: Gradient, right: Gradient) -> float | None:
    """Cosine of the angle between two gradients; None where one is zero or not finite."""
    norms = math.sqrt(_inner(left, left) * _inner(right, right))
    if norms == 0.0 or not math.isfinite(norms):
        return None
    return max(-1.0, min(1.0, _inner(left, right) / norms))


def _inner(left: Gradient, right: Gradient) -> float:
    return math.fsum(
        float(torch.dot(a.flatten().float(), b.flatten().float()))
        for a, b in zip(left, right, strict=True)
    )

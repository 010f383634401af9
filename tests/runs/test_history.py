"""Which steps are in the weights of an agent that came and went."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hacrl.runs.history import learned_steps


def row(step: int, version: int, updates: int = 2) -> dict[str, Any]:
    return {"step": step, "policy_version": version, "updates": updates}


@pytest.mark.parametrize(
    ("rows", "updates", "steps"),
    [
        ([], None, []),
        ([row(0, 0), row(1, 2), row(2, 4)], None, [0, 1, 2]),
        ([row(0, 0), row(3, 2), row(4, 4)], None, [0, 3, 4]),  # saved after its last step
        ([row(0, 0), row(1, 2), row(3, 2)], None, [0, 3]),  # step 1 was lost with it
        ([row(0, 0), row(1, 2), row(5, 0)], None, [5]),  # it began anew
        ([row(0, 0), row(1, 2, 0), row(2, 2)], None, [0, 1, 2]),  # all updates were skipped
        ([row(0, 0), row(1, 2), row(2, 4)], 4, [0, 1]),  # as in the checkpoint after step 1
        ([row(0, 0), row(1, 2)], 0, []),
    ],
)
def test_steps_that_are_in_the_weights(
    rows: list[dict[str, Any]], updates: int | None, steps: list[int]
) -> None:
    assert learned_steps(rows, updates) == steps


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_learning_saving_and_losing(seed: int) -> None:
    draw = random.Random(seed)
    rows: list[dict[str, Any]] = []
    weights: list[int] = []
    saved: list[int] = []
    updates = {step: draw.randint(1, 3) for step in range(40)}
    for step in range(40):
        what = draw.random()
        if what < 0.2:
            weights = list(saved)  # lost, and back
        elif what > 0.4:
            rows.append(row(step, sum(updates[s] for s in weights), updates[step]))
            weights.append(step)
        if draw.random() < 0.3:
            saved = list(weights)
    assert learned_steps(rows, sum(updates[s] for s in weights)) == weights

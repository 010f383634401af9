"""Accuracy and its interval."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from hacrl.config import recipe_from_dict
from hacrl.evaluation import Accuracy, evaluate, paired_difference
from hacrl.fleet import LocalFleet
from hacrl.tasks import load_prompts
from hacrl.verify import VerifierPool, make_verifiers


def test_mean_and_interval_in_closed_form() -> None:
    # Values 0, 1, 0, 1: mean 1/2, variance 1/3, standard error √(1/3)/2.
    accuracy = Accuracy.over([0.0, 1.0, 0.0, 1.0])
    assert accuracy.mean == 0.5
    assert accuracy.half_width == pytest.approx(1.959964 * (1 / 3) ** 0.5 / 2, rel=1e-6)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    generator = random.Random(0)
    covered = 0
    for _ in range(400):
        values = [float(generator.random() < 0.3) for _ in range(200)]
        accuracy = Accuracy.over(values)
        covered += abs(accuracy.mean - 0.3) <= accuracy.half_width
    assert 0.92 <= covered / 400 <= 0.98


def test_a_difference_is_paired_by_problem() -> None:
    constant = paired_difference([0.6, 0.9, 0.4], [0.5, 0.8, 0.3])
    assert constant.mean == pytest.approx(0.1)
    assert constant.half_width == pytest.approx(0.0, abs=1e-12)


def test_evaluation_leaves_no_trace_in_what_is_sampled_next(
    tiny_recipe: Callable[..., dict[str, Any]],
) -> None:
    recipe = recipe_from_dict(tiny_recipe())
    fleet, prompts = LocalFleet.from_recipe(recipe), load_prompts(recipe.tasks)
    before = fleet.sample(prompts[:2], 4, occasion="step 0")
    state = torch.get_rng_state()
    with VerifierPool(make_verifiers(recipe.tasks)) as verifiers:
        first, again = (
            evaluate(fleet, prompts, verifiers, samples=4, occasion="held-out") for _ in range(2)
        )
    assert first == again
    assert {name: len(values) for name, values in first.items()} == {"kim": 28, "lee": 28}
    assert all(value in (0, 0.25, 0.5, 0.75, 1) for values in first.values() for value in values)
    assert torch.equal(torch.get_rng_state(), state)
    assert fleet.sample(prompts[:2], 4, occasion="step 0") == before

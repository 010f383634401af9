"""Estimators against enumeration, and intervals against simulation."""

from __future__ import annotations

import itertools
import random
import statistics

import pytest

from hacrl.evaluation.answers import Answer, scores
from hacrl.evaluation.estimators import (
    bootstrap_difference,
    estimate,
    majority,
    mean_of_estimates,
    normal,
    pass_at,
    wilson,
)


@pytest.mark.parametrize(
    ("right", "total", "k"), [(r, n, k) for n in (1, 2, 5) for r in range(n + 1) for k in (1, n)]
)
def test_pass_at_k_is_the_chance_that_k_of_the_responses_hold_a_right_one(
    right: int, total: int, k: int
) -> None:
    responses = [True] * right + [False] * (total - right)
    chances = [any(drawn) for drawn in itertools.combinations(responses, k)]
    assert pass_at(k, right, total) == pytest.approx(statistics.fmean(chances))


def test_pass_at_k_is_unbiased() -> None:
    generator = random.Random(0)
    drawn = [sum(generator.random() < 0.2 for _ in range(8)) for _ in range(20_000)]
    assert statistics.fmean(pass_at(4, right, 8) for right in drawn) == pytest.approx(
        1 - 0.8**4, abs=0.01
    )


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["4", "4", "5"], 1.0),
        (["5", "5", "4"], 0.0),
        (["4", "5"], 0.5),
        (["5", "4"], 0.5),
        (["5", "6", "4"], pytest.approx(1 / 3)),
        ([None, None, "4"], 1.0),  # who has no answer does not vote
        ([None, None], 0.0),
    ],
)
def test_the_majority_decides_and_a_tie_is_shared(
    answers: list[str | None], expected: float
) -> None:
    assert majority(answers, {"4": True, "5": False, "6": False}) == expected


def test_normal_interval_in_closed_form() -> None:
    # Values 0, 1, 0, 1: mean 1/2, variance 1/3, standard error √(1/3)/2.
    made = normal([0.0, 1.0, 0.0, 1.0])
    assert made.value == 0.5
    assert made.half_width == pytest.approx(1.959964 * (1 / 3) ** 0.5 / 2, rel=1e-6)


def test_wilson_interval_against_published_values() -> None:
    # Newcombe 1998, table I: 81 of 263 and 15 of 148, and none of 20.
    for right, total, low, high in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        made = wilson(right, total)
        assert (made.low, made.high) == pytest.approx((low, high), abs=5e-5)


def test_the_interval_is_wilsons_where_every_problem_counts_0_or_1() -> None:
    assert estimate([0, 1, 1]).method == "wilson"
    assert estimate([0, 0.5, 1]).method == "normal"
    assert estimate([1, 1, 1]).low == pytest.approx(0.4385, abs=1e-4)  # certainly not 1
    assert estimate([0.5, 1, 1, 1]).high == 1.0


@pytest.mark.parametrize(
    ("problems", "samples"), [(30, 1), (200, 1), (60, 8)], ids=["few", "many", "several samples"]
)
def test_intervals_cover_the_truth_about_as_often_as_they_say(problems: int, samples: int) -> None:
    generator = random.Random(0)
    covered = 0
    for _ in range(1000):
        values = []
        for _ in range(problems):
            chance = generator.betavariate(1, 3)  # problems differ in difficulty: 1/4 on average
            values.append(sum(generator.random() < chance for _ in range(samples)) / samples)
        made = estimate(values)
        covered += made.low <= 0.25 <= made.high
    assert 0.93 <= covered / 1000 <= 0.97


def test_the_paired_bootstrap_covers_as_often_as_it_says() -> None:
    generator = random.Random(0)
    covered = 0
    for seed in range(150):
        before, after = [], []
        for _ in range(100):
            old = generator.random() < 0.4
            gains = generator.random() < 0.25
            before.append(float(old))
            after.append(float(old or gains))  # gains 0.6 · 0.25 = 0.15 on average
        made = bootstrap_difference(after, before, seed)
        covered += made.low <= 0.15 <= made.high
    assert 0.90 <= covered / 150 <= 0.99


def test_a_difference_is_paired_by_problem_and_repeats() -> None:
    constant = bootstrap_difference([0.6, 0.9, 0.4], [0.5, 0.8, 0.3])
    assert (constant.value, constant.low, constant.high) == pytest.approx((0.1, 0.1, 0.1))
    assert bootstrap_difference([1, 0, 1], [0, 0, 1]) == bootstrap_difference([1, 0, 1], [0, 0, 1])


def test_the_average_over_benchmarks_does_not_weigh_them() -> None:
    average = mean_of_estimates([wilson(10, 1000), wilson(9, 10)])
    assert average.value == pytest.approx((0.01 + 0.9) / 2)
    parts = [normal([0.0, 0.2, 0.4]), normal([0.5, 0.9])]
    errors = [part.half_width / 1.959964 for part in parts]
    expected = 1.959964 * (errors[0] ** 2 + errors[1] ** 2) ** 0.5 / 2
    assert mean_of_estimates(parts).half_width == pytest.approx(expected)


def test_an_average_of_nothing_right_is_not_certain() -> None:
    average = mean_of_estimates([wilson(0, 30), wilson(0, 40)])
    assert (average.value, average.low) == (0.0, 0.0)
    assert average.high == pytest.approx((0.1135**2 + 0.0876**2) ** 0.5 / 2, abs=1e-4)


def make_answer(problem: str, sample: int, answer: str | None, **changes: object) -> Answer:
    right = answer == "4"
    outcome = "no_answer" if answer is None else "right" if right else "wrong"
    return Answer(
        **(
            {
                "problem": problem,
                "sample": sample,
                "prompt": "2+2",
                "gold": "4",
                "response": "x",
                "tokens": 3,
                "finished": True,
                "too_long": False,
                "reward": float(right),
                "outcome": outcome,
                "answer": answer,
            }
            | changes
        )  # type: ignore[arg-type]
    )


def test_scores_of_two_problems_by_hand() -> None:
    answers = [
        *(make_answer("a", i, text) for i, text in enumerate(["4", "5", "5", None])),
        *(make_answer("b", i, text) for i, text in enumerate(["4", "4", "5", "6"])),
    ]
    found = scores(answers, "best")
    assert found is not None
    assert (found.problems, found.samples, found.metric) == (2, 4, "best@4")
    assert found.average.value == pytest.approx((0.25 + 0.5) / 2)
    assert found.best.value == found.main.value == 1.0
    assert found.majority.value == 0.5
    assert list(found.pass_at) == [1, 2, 4]
    assert found.pass_at[1].value == pytest.approx(found.average.value)
    assert found.pass_at[2].value == pytest.approx((0.5 + 5 / 6) / 2)
    assert found.no_answer == 1 / 8
    assert found.outcomes == {"right": 3, "wrong": 4, "no_answer": 1}


def test_what_could_not_be_judged_is_left_out_and_counted() -> None:
    answers = [
        make_answer("a", 0, "4"),
        make_answer("a", 1, None, reward=None, outcome="scorer_error"),
        make_answer("b", 0, None, reward=None, outcome="not_verifiable"),
        make_answer("b", 1, None, reward=None, outcome="not_verifiable"),
    ]
    found = scores(answers)
    assert found is not None
    assert (found.problems, found.unscored, found.average.value) == (1, 3, 1.0)
    assert found.pass_at[2].value == 1.0
    assert scores(answers[2:]) is None


def test_cut_responses_and_problems_that_are_too_long_are_told_apart() -> None:
    answers = [
        make_answer("a", 0, None, finished=False),
        make_answer("b", 0, None, finished=False, too_long=True, tokens=0),
    ]
    found = scores(answers)
    assert found is not None
    assert (found.truncated, found.too_long, found.average.value) == (0.5, 1, 0.0)

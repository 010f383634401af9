"""Rows that turn out to be clipped are not learned from twice, nor at all: exactly as without."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from hacrl.agents.learning.learner import Learner, UpdateOutcome
from hacrl.agents.learning.lessons import Lesson
from hacrl.agents.learning.loss import Loss
from hacrl.agents.learning.outcomes import RowOutcome
from hacrl.agents.learning.screening import Screening
from hacrl.agents.policy.policy import Policy
from tests.agents.learning.test_learner import LONGEST, learner_of, lessons_of
from tests.tolerances import assert_close_gradients, rounding, terms

pytestmark = pytest.mark.numerics

TIGHT = {"mini_batches": 2, "delta": 0.15, "own_low": 0.02, "own_high": 0.02}


@pytest.fixture
def lessons(kim: Policy) -> list[Lesson]:
    """Own and peers' rows, of which every second is off by far more than its interval allows."""
    return [
        dataclasses.replace(
            lesson,
            rollout=dataclasses.replace(
                lesson.rollout,
                logprob=lesson.rollout.logprob + 0.3 * (-1) ** i * lesson.rollout.length,
            ),
        )
        if i // 4 % 2
        else lesson
        for i, lesson in enumerate(lessons_of(kim))
    ]


@contextmanager
def gradients_kept() -> Iterator[tuple[list[list[torch.Tensor]], list[int]]]:
    """The gradient of every update, which is not applied, and the rows that were learned from."""
    gradients: list[list[torch.Tensor]] = []
    learned_from: list[int] = []
    backward_rows = Loss.backward_rows

    def step(self: torch.optim.AdamW) -> None:
        gradients.append([p.grad.clone() for g in self.param_groups for p in g["params"]])

    def noted(self: Loss, lessons, rows, *rest):  # type: ignore[no-untyped-def]
        learned_from.extend(rows)
        return backward_rows(self, lessons, rows, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", step)
        patch.setattr(Loss, "backward_rows", noted)
        yield gradients, learned_from


def learned(
    policy: Policy, lessons: list[Lesson], *, screened: bool
) -> tuple[
    Mapping[int, RowOutcome], list[UpdateOutcome], list[list[torch.Tensor]], list[int], Learner
]:
    learner = learner_of(dataclasses.replace(policy, model=copy.deepcopy(policy.model)), **TIGHT)
    with gradients_kept() as (gradients, learned_from), pytest.MonkeyPatch.context() as patch:
        if not screened:
            patch.setattr(Screening, "candidates", lambda *_: [])
        rows, updates = learner.learn(lessons)
    return rows, updates, gradients, learned_from, learner


def test_screening_changes_no_gradient_no_loss_and_no_metric(
    kim: Policy, lessons: list[Lesson]
) -> None:
    plain_rows, plain_updates, plain, everything, _ = learned(kim, lessons, screened=False)
    rows, updates, gradients, learned_from, _ = learned(kim, lessons, screened=True)
    clipped = {i for i, row in plain_rows.items() if not row.teaches}
    late = {i for i, row in plain_rows.items() if row.update > 0}
    assert len(clipped & late) > 4
    assert len(late - clipped) > 4
    assert set(everything) == plain_rows.keys() == rows.keys()
    assert set(learned_from) == plain_rows.keys() - (clipped & late)
    allowed = rounding(terms(kim.model, LONGEST))
    for one, other in zip(gradients, plain, strict=True):
        assert_close_gradients(one, other, terms(kim.model, LONGEST))
    for one_update, other_update in zip(updates, plain_updates, strict=True):
        assert one_update.loss == pytest.approx(other_update.loss, abs=allowed)
    for i, row in rows.items():
        assert row.log_ratio == pytest.approx(plain_rows[i].log_ratio, abs=allowed)
        assert dataclasses.replace(row, log_ratio=0.0) == dataclasses.replace(
            plain_rows[i], log_ratio=0.0
        )


def test_the_first_own_rows_and_those_with_a_kl_term_are_not_screened(
    kim: Policy, lessons: list[Lesson]
) -> None:
    rows = range(len(lessons))
    peers = [i for i in rows if not lessons[i].own]
    plain, with_kl = (Screening(own_always_teach=kl) for kl in (False, True))
    assert plain.candidates(lessons, rows, update=0) == peers
    assert plain.candidates(lessons, rows, update=1) == [*rows]
    assert with_kl.candidates(lessons, rows, update=1) == peers


def test_what_teaches_mostly_is_screened_no_more_until_it_is_clipped_again(
    lessons: list[Lesson],
) -> None:
    rows = range(len(lessons))
    own = [i for i in rows if lessons[i].own]
    screening = Screening(own_always_teach=False)
    screening.observe([(False, True), (False, True), (False, False), (True, False)], update=1)
    assert screening.teaching == (0.0, pytest.approx(2 / 3))
    assert screening.candidates(lessons, rows, update=1) == own
    screening.observe([(True, True)], update=0)  # the first update tells nothing of own rows
    screening.observe([], update=1)
    assert screening.teaching == (0.0, pytest.approx(2 / 3))
    screening.observe([(False, False)], update=1)
    assert screening.candidates(lessons, rows, update=1) == [*rows]


def test_rows_that_are_not_finite_still_skip_the_update(kim: Policy, lessons: list[Lesson]) -> None:
    i = max(i for i, lesson in enumerate(lessons) if lesson.advantage)
    broken = dataclasses.replace(lessons[i].rollout, logprob=float("nan"))
    lessons[i] = dataclasses.replace(lessons[i], rollout=broken)
    for screened in (False, True):
        rows, updates, *_ = learned(kim, lessons, screened=screened)
        assert not rows[i].finite
        assert [update.skipped for update in updates] == [False, False, False, True]


def test_what_was_seen_of_late_is_saved(kim: Policy, lessons: list[Lesson], tmp_path: Path) -> None:
    *_, learner = learned(kim, lessons, screened=True)
    seen = learner._loss.screening.teaching
    assert all(0 < share < 1 for share in seen)
    learner.save(tmp_path)
    other = learner_of(kim, **TIGHT)
    other.restore(tmp_path)
    assert other._loss.screening.teaching == seen

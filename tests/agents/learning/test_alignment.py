"""The cosine of the gradients of J_homo and J_hete, and that measuring it changes nothing."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from hacrl.agents.learning.alignment import cosine, measure_alignment, probe
from hacrl.agents.learning.lessons import Lesson
from hacrl.agents.policy.policy import Policy
from hacrl.config import recipe_from_dict
from hacrl.training.train import train
from tests.agents.learning.test_learner import LONGEST, learner_of, lessons_of
from tests.tolerances import rounding, terms

pytestmark = pytest.mark.numerics

WIDE = {"delta": 1.0, "delta_step": 0.0}


def term(policy: Policy, lesson: Lesson, alpha: float) -> torch.Tensor:
    """A row's part of the objective inside all clips, written out by hand."""
    ids = torch.tensor([[*lesson.prompt_ids, *lesson.response_ids]])
    start = len(lesson.prompt_ids)
    logprobs = policy.model(input_ids=ids).logits[0, start - 1 : -1].log_softmax(-1)
    new = logprobs.gather(1, ids[0, start:, None]).sum()
    s = ((new - lesson.rollout.logprob) / lesson.rollout.length).exp()
    return s * (1.0 if lesson.own else s.detach() ** alpha) * lesson.advantage


def flat_gradient(policy: Policy, lessons: Sequence[Lesson], alpha: float = 1.0) -> torch.Tensor:
    value = torch.stack([term(policy, le, alpha) for le in lessons]).mean()
    return torch.cat(
        [g.flatten() for g in torch.autograd.grad(value, list(policy.model.parameters()))]
    )


def three_agents(policy: Policy) -> list[Lesson]:
    """Own rows and those of two peers, one of which rewards what the others do not."""
    lessons = lessons_of(policy)
    for lesson in lessons_of(policy)[16:]:
        rollout = dataclasses.replace(lesson.rollout, agent="other")
        lessons.append(dataclasses.replace(lesson, rollout=rollout, advantage=-lesson.advantage))
    return lessons


def allowed(policy: Policy) -> float:
    """Of a cosine: two gradients, each there and back."""
    return rounding(4 * terms(policy.model, LONGEST))


def test_it_is_the_cosine_of_gradients_taken_by_hand(kim: Policy) -> None:
    lessons = three_agents(kim)
    learner = learner_of(kim, **WIDE)
    found = measure_alignment(learner, lessons, "kim", ["peer", "other"], 1)
    own, peer, other = (
        flat_gradient(kim, [le for le in lessons if le.rollout.agent == name])
        for name in ("kim", "peer", "other")
    )
    for name, theirs in (("peer", peer), ("other", other)):
        expected = float(torch.cosine_similarity(own, theirs, dim=0))
        assert found["alignment"][name] == pytest.approx(expected, abs=allowed(kim))
    assert found["alignment"]["peer"] > 0.9, "the same responses, a little less likely"
    opposite = pytest.approx(-found["alignment"]["peer"], abs=allowed(kim))
    assert found["alignment"]["other"] == opposite


def test_of_all_peers_it_is_that_of_the_sum(kim: Policy) -> None:
    lessons = three_agents(kim)
    doubled = [
        dataclasses.replace(le, advantage=2 * le.advantage) if le.rollout.agent == "peer" else le
        for le in lessons
    ]
    found = measure_alignment(learner_of(kim, **WIDE), doubled, "kim", ["peer", "other"], 1)
    same = pytest.approx(found["alignment"]["peer"], abs=allowed(kim))
    assert found["alignment_of_peers"] == same


def test_a_source_that_is_clipped_altogether_is_a_gap(kim: Policy) -> None:
    lessons = lessons_of(kim)
    narrow = learner_of(kim, delta=0.0, delta_step=0.0)
    found = measure_alignment(narrow, lessons, "kim", ["peer"], 1)
    assert found == {"alignment": {"peer": None}, "alignment_of_peers": None}


def test_alone_there_is_nothing_to_measure(kim: Policy) -> None:
    assert measure_alignment(learner_of(kim), lessons_of(kim, peer=False), "kim", [], 1) == {}


def test_the_probe_is_the_first_mini_batch_of_usable_rows(kim: Policy) -> None:
    lessons = lessons_of(kim)
    lessons[1] = dataclasses.replace(lessons[1], left_out="unscored")
    assert probe(lessons, "kim", 1) == [0, *range(2, 16)]
    assert probe(lessons, "kim", 5) == [0, 2, 3]
    assert probe(lessons, "peer", 4) == [16, 17, 18, 19]


@pytest.mark.parametrize("tokens", [1, 70])
def test_micro_batches_and_checkpointing_do_not_change_it(kim: Policy, tokens: int) -> None:
    lessons = three_agents(kim)
    whole = measure_alignment(learner_of(kim, **WIDE), lessons, "kim", ["peer"], 1)
    split = learner_of(kim, micro_batch_tokens=tokens, gradient_checkpointing=True, **WIDE)
    parts = measure_alignment(split, lessons, "kim", ["peer"], 1)
    same = pytest.approx(whole["alignment"]["peer"], abs=allowed(kim))
    assert parts["alignment"]["peer"] == same
    assert not kim.model.training


def test_cosine_in_closed_form() -> None:
    right = [torch.tensor([[3.0, 0.0]]), torch.tensor([0.0])]
    up = [torch.tensor([[3.0, 0.0]]), torch.tensor([4.0])]
    assert cosine(right, up) == pytest.approx(0.6)
    assert cosine(right, [-part for part in right]) == -1.0
    assert cosine(right, [torch.zeros_like(part) for part in right]) is None
    assert cosine(right, [part * math.inf for part in up]) is None


def test_measuring_leaves_no_trace(kim: Policy) -> None:
    lessons = lessons_of(kim)
    clone = dataclasses.replace(kim, model=copy.deepcopy(kim.model))
    plain, measured = learner_of(kim, **WIDE), learner_of(clone, **WIDE)
    state = torch.get_rng_state()
    measure_alignment(measured, lessons, "kim", ["peer"], 1)
    assert torch.equal(state, torch.get_rng_state())
    assert all(p.grad is None for p in clone.model.parameters())
    assert plain.learn(lessons) == measured.learn(lessons)
    for a, b in zip(kim.model.parameters(), clone.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_run_is_the_same_bit_for_bit_with_it(
    tiny_recipe: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    clip = {**WIDE, "own_low": 0.3, "own_high": 0.3}
    folders = [
        train(recipe_from_dict(tiny_recipe(clip=clip), [f"update.alignment_every={every}"]), root)
        for every, root in (("null", tmp_path / "off"), (2, tmp_path / "on"))
    ]
    off, on = (
        [json.loads(line) for line in (folder.path / "metrics.jsonl").read_text().splitlines()]
        for folder in folders
    )
    new = {"alignment", "alignment_of_peers"}

    def otherwise(row: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in row.items() if key not in new | {"seconds"}}

    assert [otherwise(row) for row in on] == [otherwise(row) for row in off]
    assert not any(new & row.keys() for row in off)
    assert all((new <= row.keys()) == (row["step"] % 2 == 0) for row in on)
    measured = [row for row in on if "alignment" in row]
    assert any(value is not None for row in measured for value in row["alignment"].values())
    for agent in ("kim", "lee"):
        left, right = (load_file(f.agents[agent] / "model.safetensors") for f in folders)
        assert all(torch.equal(left[k], right[k]) for k in left)

"""The update: exactness of its shortcuts, splits, and what it reports."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
import torch

from hacrl.agents.learning.learner import Learner
from hacrl.agents.learning.lessons import Lesson
from hacrl.agents.policy.logprobs import pad, response_logprobs
from hacrl.agents.policy.policy import Policy
from hacrl.agents.policy.prompt_pass import PromptPass
from hacrl.agents.sampling.hugging_face import sample
from hacrl.config.algorithm import Clip, Ratio
from hacrl.config.learning import Optimizer, Update
from hacrl.errors import UserError
from hacrl.records import Rollout
from tests.algorithms import algorithm
from tests.tolerances import assert_close, assert_close_gradients, rounding, terms

pytestmark = pytest.mark.numerics

PROMPTS = [[3, 4, 5], [6, 7], [8], [9, 10, 11, 12]]
RATE = 1e-2
LONGEST = 28
"""Tokens of a row at most: 4 of a prompt, 24 drawn."""


def lessons_of(policy: Policy, *, peer: bool = True) -> list[Lesson]:
    """16 own rows and, from a peer that is a little off, 16 more, of widely varying lengths."""
    groups = sample(policy, PROMPTS, 4, temperature=1.0, max_new_tokens=24, batch_size=64, seed=3)
    lessons = []
    for own in (True, False) if peer else (True,):
        for p, group in enumerate(groups):
            for i, one in enumerate(group):
                shift = 0.0 if own else 0.1
                rollout = Rollout(
                    prompt=p,
                    agent=policy.name if own else "peer",
                    sample=i,
                    policy_version=0,
                    text="",
                    logprob=math.fsum(lp + shift for lp in one.logprobs),
                    length=len(one.token_ids),
                    finished=one.finished,
                )
                advantage = (1.0, -0.5, 0.0, -0.5)[i]
                lessons.append(
                    Lesson(
                        *(rollout, own, advantage, PROMPTS[p], one.token_ids, None),
                        sampled=tuple(one.logprobs) if own else (),
                    )
                )
    return lessons


def learner_of(
    policy: Policy, *, kl: float = 0.0, reference: Policy | None = None, **changes: object
) -> Learner:
    update = Update.model_validate(
        {"kl": kl, **{k: v for k, v in changes.items() if k in Update.model_fields}}
    )
    return Learner(
        policy,
        reference,
        temperature=1.0,
        mini_batches=update.mini_batches,
        algorithm=algorithm(
            Ratio.model_validate({k: v for k, v in changes.items() if k in Ratio.model_fields}),
            Clip.model_validate(
                {"own_low": 0.2, "own_high": 0.2}
                | {k: v for k, v in changes.items() if k in Clip.model_fields}
            ),
        ),
        update=update,
        optimizer=Optimizer(learning_rate=RATE, max_grad_norm=1e9, schedule="constant"),
        total_updates=8,
    )


def gradients_of(
    policy: Policy, lessons: Sequence[Lesson], monkeypatch: pytest.MonkeyPatch, **changes: object
) -> list[list[torch.Tensor]]:
    """The gradient of every update, instead of applying it."""
    seen: list[list[torch.Tensor]] = []
    clone = dataclasses.replace(policy, model=copy.deepcopy(policy.model))

    def keep(self: torch.optim.AdamW) -> None:
        seen.append([p.grad.clone() for g in self.param_groups for p in g["params"]])

    with monkeypatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", keep)
        learner_of(clone, **changes).learn(lessons)
    return seen


def assert_same(
    policy: Policy, left: list[list[torch.Tensor]], right: list[list[torch.Tensor]]
) -> None:
    assert len(left) == len(right) > 0
    for a, b in zip(left, right, strict=True):
        assert max(float(g.abs().max()) for g in a) > 1e-3, "nothing to compare"
        assert_close_gradients(a, b, terms(policy.model, LONGEST))


@pytest.mark.parametrize("level", ["sequence", "token"])
@pytest.mark.parametrize("tokens", [1, 70, 200])
def test_micro_batches_do_not_change_the_gradient(
    kim: Policy, monkeypatch: pytest.MonkeyPatch, level: str, tokens: int
) -> None:
    lessons = lessons_of(kim, peer=level == "sequence")
    whole = gradients_of(kim, lessons, monkeypatch, level=level)
    parts = gradients_of(kim, lessons, monkeypatch, level=level, micro_batch_tokens=tokens)
    assert_same(kim, parts, whole)


def test_rows_without_advantage_are_not_computed_and_count_in_the_mean(
    kim: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    lessons = lessons_of(kim, peer=False)
    rows, _ = learner_of(dataclasses.replace(kim, model=copy.deepcopy(kim.model))).learn(lessons)
    assert sorted(rows) == [i for i, lesson in enumerate(lessons) if lesson.advantage != 0]
    tiny = [dataclasses.replace(lesson, advantage=lesson.advantage or 1e-30) for lesson in lessons]
    assert_same(kim, gradients_of(kim, lessons, monkeypatch), gradients_of(kim, tiny, monkeypatch))


def test_alone_it_is_gspo_written_out_by_hand(kim: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    lessons = lessons_of(kim, peer=False)
    (ours,) = gradients_of(kim, lessons, monkeypatch)
    model = copy.deepcopy(kim.model)
    loss = torch.zeros(())
    for lesson in lessons:
        ids = torch.tensor([[*lesson.prompt_ids, *lesson.response_ids]])
        start = len(lesson.prompt_ids)
        logprobs = model(input_ids=ids).logits[0, start - 1 : -1].log_softmax(-1)
        new = logprobs.gather(1, ids[0, start:, None]).sum()
        s = ((new - lesson.rollout.logprob) / len(lesson.response_ids)).exp()
        a = lesson.advantage
        loss = loss - torch.minimum(s * a, s.clamp(0.8, 1.2) * a) / len(lessons)
    loss.backward()
    assert_same(kim, [ours], [[p.grad for p in model.parameters()]])


def test_first_update_has_ratio_one_and_later_ones_move(kim: Policy) -> None:
    lessons = lessons_of(kim, peer=False)
    rows, updates = learner_of(kim, mini_batches=4).learn(lessons)
    assert len(updates) == 4
    first = [abs(row.log_ratio) for row in rows.values() if row.update == 0]
    later = [abs(row.log_ratio) for row in rows.values() if row.update > 0]
    allowed = rounding(terms(kim.model, LONGEST))
    assert max(first) < allowed
    assert min(later) > allowed


def test_a_learner_with_one_peer_makes_twice_the_updates_own_rows_first(kim: Policy) -> None:
    lessons = lessons_of(kim)
    rows, updates = learner_of(kim, mini_batches=2, micro_batch_tokens=50).learn(lessons)
    assert len(updates) == 4
    assert {row.update for i, row in rows.items() if lessons[i].own} == {0, 1}
    assert {row.update for i, row in rows.items() if not lessons[i].own} == {2, 3}


def test_the_stepwise_bound_counts_updates_not_micro_batches(kim: Policy) -> None:
    """With δ = 0.2 and δ_step = 0.1 the bound is .8 .9 1 1: nothing is inside from the third on."""
    lessons = lessons_of(kim)
    for tokens in (30, 100_000):
        clone = dataclasses.replace(kim, model=copy.deepcopy(kim.model))
        learner = learner_of(
            clone, mini_batches=2, micro_batch_tokens=tokens, delta_step=0.1, own_low=1.0
        )
        rows, _ = learner.learn(lessons)
        cross = [row for i, row in rows.items() if not lessons[i].own]
        assert all(row.below + row.above == 1 for row in cross)
        clone = dataclasses.replace(kim, model=copy.deepcopy(kim.model))
        rows, _ = learner_of(
            clone, mini_batches=2, micro_batch_tokens=tokens, delta=1.0, delta_step=0.0
        ).learn(lessons)
        assert any(row.teaches for i, row in rows.items() if not lessons[i].own)


def test_gradient_checkpointing_gives_the_same_gradient(
    kim: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    lessons = lessons_of(kim)
    assert_same(
        kim,
        gradients_of(kim, lessons, monkeypatch, gradient_checkpointing=True),
        gradients_of(kim, lessons, monkeypatch),
    )


def test_autocast_stays_near_full_precision(kim: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    lessons = lessons_of(kim, peer=False)
    (half,) = gradients_of(kim, lessons, monkeypatch, autocast="bfloat16")
    (full,) = gradients_of(kim, lessons, monkeypatch)
    flat = [torch.cat([g.flatten() for g in grads]) for grads in (half, full)]
    assert float(torch.cosine_similarity(*flat, dim=0)) > 0.98
    assert not torch.equal(*flat)


def test_kl_pulls_towards_the_reference_on_all_own_rows(
    kim: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = dataclasses.replace(kim, model=copy.deepcopy(kim.model))
    moved = dataclasses.replace(kim, model=copy.deepcopy(kim.model))
    with torch.no_grad():
        for parameter in moved.model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=torch.Generator()))
    still = [dataclasses.replace(lesson, advantage=0.0) for lesson in lessons_of(kim)]
    learner = learner_of(moved, kl=1.0, reference=reference)

    def distance() -> float:
        own = [lesson for lesson in still if lesson.own]
        sequences = pad(
            [le.prompt_ids for le in own],
            [le.response_ids for le in own],
            kim.pad_id,
            kim.device,
        )
        with torch.no_grad():
            new, old = (response_logprobs(p, sequences, 1.0) for p in (moved, reference))
        r = old - new
        return float((r.exp() - 1 - r).sum())

    before = distance()
    rows, _ = learner.learn(still)
    assert sorted(rows) == [i for i, lesson in enumerate(still) if lesson.own]
    for _ in range(5):
        learner.learn(still)
    assert distance() < 0.7 * before


def test_one_hopeless_row_leaves_everything_finite(kim: Policy) -> None:
    lessons = lessons_of(kim)
    hopeless = dataclasses.replace(lessons[16].rollout, logprob=-300.0 * lessons[16].rollout.length)
    lessons[16] = dataclasses.replace(lessons[16], rollout=hopeless)
    rows, updates = learner_of(kim, cross="none", alpha=3.0).learn(lessons)
    assert abs(rows[16].log_ratio) > 200
    assert not rows[16].teaches
    assert not any(update.skipped for update in updates)
    assert all(bool(p.isfinite().all()) for p in kim.model.parameters())


def test_an_update_whose_gradient_is_not_finite_is_skipped_and_counted(kim: Policy) -> None:
    lessons = [
        dataclasses.replace(lesson, advantage=float("inf")) for lesson in lessons_of(kim)[:4]
    ]
    before = copy.deepcopy(kim.model.state_dict())
    _, (update,) = learner_of(kim).learn(lessons)
    assert update.skipped
    assert all(torch.equal(before[k], v) for k, v in kim.model.state_dict().items())


def test_left_out_rows_neither_count_nor_teach(
    kim: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    lessons = lessons_of(kim, peer=False)
    marked = [
        dataclasses.replace(lesson, left_out="unscored" if i % 4 == 1 else None)
        for i, lesson in enumerate(lessons)
    ]
    without = [lesson for i, lesson in enumerate(lessons) if i % 4 != 1]
    assert_same(
        kim, gradients_of(kim, marked, monkeypatch), gradients_of(kim, without, monkeypatch)
    )


def test_long_and_short_rows_weigh_the_same(kim: Policy) -> None:
    """One term per sequence: with ratio 1 each row adds its advantage over the number of rows."""
    lessons = lessons_of(kim, peer=False)
    assert len({len(lesson.response_ids) for lesson in lessons}) > 3
    _, (update,) = learner_of(kim).learn(lessons)
    mean = sum(lesson.advantage for lesson in lessons) / len(lessons)
    assert update.loss == pytest.approx(-mean, abs=rounding(terms(kim.model, LONGEST)))


TOTAL = 8


def share_of_the_rate(schedule: str, warmup: int, update: int) -> float:
    """Of the learning rate, at an update counted from 0, in a run of `TOTAL`."""
    if update < warmup:
        return update / warmup
    progress = (update - warmup) / max(1, TOTAL - warmup)
    return {
        "constant": 1.0,
        "linear": 1.0 - progress,
        "cosine": (1.0 + math.cos(math.pi * progress)) / 2.0,
    }[schedule]


@pytest.mark.parametrize("warmup", [0, 1, 2, 5, TOTAL, 100])
@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_every_schedule_warms_up_and_counts_updates(
    kim: Policy, schedule: Literal["constant", "linear", "cosine"], warmup: int
) -> None:
    learner = Learner(
        kim,
        None,
        temperature=1.0,
        mini_batches=4,
        algorithm=algorithm(),
        update=Update(),
        optimizer=Optimizer(learning_rate=RATE, schedule=schedule, warmup_updates=warmup),
        total_updates=TOTAL,
    )
    lessons = lessons_of(kim, peer=False)
    updates = [update for _ in range(2) for update in learner.learn(lessons)[1]]
    shares = [share_of_the_rate(schedule, warmup, update) for update in range(TOTAL)]
    assert [u.learning_rate / RATE for u in updates] == pytest.approx(shares, abs=1e-12)


def test_the_gradient_is_clipped_to_its_largest_norm(kim: Policy) -> None:
    """AdamW with a huge ε is plain descent: weights move in proportion to the clipped norm."""
    lessons = lessons_of(kim, peer=False)
    seen = []
    for limit in (1e9, 1e-3):
        clone = dataclasses.replace(kim, model=copy.deepcopy(kim.model))
        learner = Learner(
            clone,
            None,
            temperature=1.0,
            mini_batches=1,
            algorithm=algorithm(),
            update=Update(),
            optimizer=Optimizer(learning_rate=1e3, max_grad_norm=limit, epsilon=1e3),
            total_updates=1,
        )
        _, (update,) = learner.learn(lessons)
        moved = [
            (a - b).detach().square().sum()
            for a, b in zip(clone.model.parameters(), kim.model.parameters(), strict=True)
        ]
        seen.append((update.gradient_norm, float(torch.stack(moved).sum().sqrt())))
    (norm, free), (same_norm, held) = seen
    assert same_norm == norm > 1e-3, "the reported norm is that before clipping"
    assert held / free == pytest.approx(1e-3 / norm, rel=0.05)


def test_recomputed_logprobs_make_the_first_ratio_one_in_other_arithmetic(kim: Policy) -> None:
    lessons = lessons_of(kim)

    def own_ratios(recompute: bool) -> list[float]:
        clone = dataclasses.replace(kim, model=copy.deepcopy(kim.model))
        learner = learner_of(clone, autocast="bfloat16")
        rows, _ = learner.learn(learner.recompute(lessons) if recompute else lessons)
        return [abs(row.log_ratio) for row in rows.values() if row.update == 0]

    assert max(own_ratios(recompute=False)) > 3e-4, "more than GSPO's clip allows"
    assert max(own_ratios(recompute=True)) < 1e-6


def test_recomputing_in_the_same_arithmetic_changes_nothing_but_rounding(kim: Policy) -> None:
    lessons = lessons_of(kim)
    again = learner_of(kim).recompute(lessons)
    for before, after in zip(lessons, again, strict=True):
        assert (after.recomputed is not None) == (before.own and before.advantage != 0)
        assert_close(after.old_logprobs, before.old_logprobs, terms(kim.model, LONGEST))
        assert len(after.old_logprobs) == (before.rollout.length if before.own else 0)
        assert after.rollout == before.rollout


def out_of_memory_above(tokens: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let every micro-batch of more padded tokens fail, on its way back; sizes that were tried."""
    tried: list[int] = []
    backward, score = torch.autograd.backward, PromptPass.response_logprobs

    def scarce(*args: Any) -> None:
        backward(*args)  # some of the gradient is there already when memory runs out
        if tried[-1] > tokens:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    def counted(self: PromptPass, responses: Any, *rest: Any) -> Any:
        tried.append(len(responses) * max(len(ids) for ids in responses))
        return score(self, responses, *rest)

    monkeypatch.setattr("torch.autograd.backward", scarce)
    monkeypatch.setattr(PromptPass, "response_logprobs", counted)
    return tried


def test_running_out_of_memory_costs_a_retry_and_nothing_of_the_gradient(
    kim: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    lessons = lessons_of(kim, peer=False)
    wanted = gradients_of(kim, lessons, monkeypatch)
    with monkeypatch.context() as patch:
        tried = out_of_memory_above(60, patch)
        found = gradients_of(kim, lessons, monkeypatch)
    assert_same(kim, found, wanted)
    assert tried[0] > 60
    last = max(i for i, size in enumerate(tried) if size > 60)
    assert len(tried) > last + 2, "all of it is done once more"


def test_smaller_micro_batches_stay_and_are_reported(
    kim: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    lessons = lessons_of(kim, peer=False)
    learner = learner_of(kim)
    assert learner.reduced_micro_batch_tokens is None
    with monkeypatch.context() as patch:
        out_of_memory_above(60, patch)
        learner.learn(lessons)
    found = learner.reduced_micro_batch_tokens
    assert found is not None
    with monkeypatch.context() as patch:
        tried = out_of_memory_above(10_000, patch)
        learner.learn(lessons)
    assert max(tried) <= 60


def test_a_single_row_that_is_too_much_is_refused(
    kim: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    out_of_memory_above(0, monkeypatch)
    with pytest.raises(UserError, match=r"agent kim: memory is too small .* sampling.max_new"):
        learner_of(kim).learn(lessons_of(kim, peer=False))


def test_other_errors_are_no_lack_of_memory(kim: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> None:
        raise RuntimeError("device-side assert triggered")

    monkeypatch.setattr("torch.autograd.backward", broken)
    with pytest.raises(RuntimeError, match="assert"):
        learner_of(kim).learn(lessons_of(kim, peer=False))


def test_skipped_updates_in_a_row_are_counted_across_steps(kim: Policy) -> None:
    good = lessons_of(kim, peer=False)
    bad = [dataclasses.replace(lesson, advantage=float("nan")) for lesson in good]
    learner = learner_of(kim, mini_batches=2)
    for lessons, count in ((bad, 2), (bad, 4), (good, 0), (bad, 2)):
        rows, updates = learner.learn(lessons)
        assert learner.skipped_in_a_row == count
        assert all(update.skipped for update in updates) == (count > 0)
        assert all(row.finite for row in rows.values()) == (count == 0)
    assert all(bool(p.isfinite().all()) for p in kim.model.parameters())


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_a_restored_learner_goes_on_as_the_first_one_would(
    kim: Policy, tmp_path: Path, schedule: str
) -> None:
    lessons = lessons_of(kim)

    def make(policy: Policy) -> Learner:
        return Learner(
            policy,
            None,
            temperature=1.0,
            mini_batches=2,
            algorithm=algorithm(clip=Clip(own_low=0.5, own_high=0.5, delta=0.9)),
            update=Update(),
            optimizer=Optimizer(learning_rate=RATE, schedule=schedule, warmup_updates=3),
            total_updates=20,
        )

    first = make(kim)
    first.learn(lessons)
    first.save(tmp_path)
    twin = dataclasses.replace(kim, model=copy.deepcopy(kim.model))
    second = make(twin)
    second.restore(tmp_path)
    assert second.learn(lessons) == first.learn(lessons)
    for a, b in zip(kim.model.parameters(), twin.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_an_optimizer_of_another_model_is_refused(kim: Policy, lee: Policy, tmp_path: Path) -> None:
    learner = learner_of(kim)
    learner.learn(lessons_of(kim, peer=False))
    learner.save(tmp_path)
    with pytest.raises(UserError, match=r"optimizer\.safetensors"):
        learner_of(lee).restore(tmp_path)
    (tmp_path / "optimizer.safetensors").write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"optimizer\.safetensors: cannot be read"):
        learner.restore(tmp_path)

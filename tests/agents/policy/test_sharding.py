"""The gradient of a mini-batch is the same on any number of ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import distributed, multiprocessing
from torch.distributed.tensor import DTensor

from hacrl.agents.learning.lessons import Lesson
from hacrl.agents.learning.loss import Loss
from hacrl.agents.policy.policy import Policy
from hacrl.agents.policy.sharding import ALONE, Share, shard, whole
from hacrl.agents.sampling.base import Sample
from hacrl.agents.sampling.hugging_face import sample
from hacrl.config.algorithm import Clip
from hacrl.config.learning import Update
from hacrl.records import Rollout
from tests.agents.conftest import byte_tokenizer, make_policy
from tests.algorithms import algorithm
from tests.tolerances import assert_close, assert_close_gradients, rounding, terms

LENGTHS = (5, 2, 9, 3, 7)
PROMPTS = [[1, 2, 3], [4, 5], [6, 7, 8, 9]]


def lessons(count: int) -> list[Lesson]:
    """Rows of uneven length, own and foreign; a single one leaves a rank without any."""
    made = []
    for row, length in enumerate(LENGTHS[:count]):
        ids = tuple(range(10 + row, 10 + row + length))
        own = row % 2 == 0
        rollout = Rollout(
            prompt=0,
            agent="kim" if own else "lee",
            sample=row,
            policy_version=0,
            text="",
            logprob=-5.5 * length,
            length=length,
            finished=True,
            unshareable=None,
        )
        sampled = (-5.5,) * length
        made.append(Lesson(rollout, own, 1.0 - 0.7 * row, PROMPTS[row % 3], ids, None, sampled))
    return made


Drawn = list[list[Sample]]
Result = tuple[dict[str, torch.Tensor], float, list[int], Drawn]


def draw(policy: Policy, *, gather: bool = False) -> Drawn:
    """Samples that end at different times, the last of them in a batch of one."""
    return sample(
        policy,
        PROMPTS,
        3,
        temperature=1.0,
        max_new_tokens=12,
        batch_size=4,
        seed=3,
        gather=gather,
    )


def draw_and_count(policy: Policy, *, gather: bool) -> tuple[Drawn, int]:
    """Samples, and how many layers this rank held whole at most, as each of them computed."""
    layers = list(policy.model.base_model.layers)
    most = 0

    def count(*_: object) -> None:
        nonlocal most
        held = [not isinstance(next(layer.parameters()), DTensor) for layer in layers]
        most = max(most, sum(held))

    hooks = [layer.mlp.register_forward_hook(count) for layer in layers]
    drawn = draw(policy, gather=gather)
    for hook in hooks:
        hook.remove()
    assert all(isinstance(one, DTensor) for one in policy.model.parameters())
    return drawn, most


def work(policy: Policy, count: int, checkpointing: bool) -> Result:
    """Gradient, loss, the rows with an outcome, and samples of a policy."""
    drawn = draw(policy)
    if checkpointing:
        policy.model.gradient_checkpointing_enable({"use_reentrant": False})
        policy.model.train()
    loss = Loss(
        policy,
        None,
        temperature=0.9,
        algorithm=algorithm(clip=Clip(delta=0.9, own_low=5.0, own_high=5.0)),
        update=Update(micro_batch_tokens=16, gradient_checkpointing=checkpointing),
    )
    value, outcomes = loss.backward(lessons(count), range(count), update=0)
    gradients = {name: whole(p.grad) for name, p in policy.model.named_parameters()}
    return gradients, value, sorted(outcomes), drawn


def policy_of(family: str) -> Policy:
    policy = make_policy("kim", family, byte_tokenizer(begin=False, merges=False))
    return dataclasses.replace(policy, stop_ids=(*policy.stop_ids, *range(50)))


def full() -> None:
    raise OSError("disk full")


def run_rank(rank: int, folder: str, cases: Sequence[tuple[str, int, bool]], results: Any) -> None:
    """All cases, one after another, on one of two ranks."""
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2
    )
    for family, count, checkpointing in cases:
        policy = policy_of(family)
        object.__setattr__(policy, "share", Share(rank, 2))
        shard(policy.model, 2, torch.device("cpu"))
        found = [draw_and_count(policy, gather=gather) for gather in (False, True)]
        gradients, value, rows, drawn = work(policy, count, checkpointing)
        plain = {name: gradient.tolist() for name, gradient in gradients.items()}
        results.put((rank, plain, value, rows, drawn, found))
    with pytest.raises(OSError, match="disk full"):  # so that nobody waits for another
        Share(rank, 2).write(full)
    assert Share(rank, 2).gather(rank) == [0, 1]
    distributed.destroy_process_group()


CASES = [("qwen", 5, False), ("llama", 5, True), ("qwen", 1, False), ("llama", 3, False)]


def test_gradient_and_samples_equal_those_of_one_rank(
    tmp_path: Path, forking: Callable[..., None]
) -> None:
    forking(Loss.__module__, sample.__module__, make_policy.__module__)
    context = multiprocessing.get_context("forkserver")
    results: Queue[Any] = context.Queue()
    ranks = [
        context.Process(target=run_rank, args=(rank, str(tmp_path), CASES, results))
        for rank in range(2)
    ]
    for process in ranks:
        process.start()
    found = [results.get(timeout=600) for _ in range(2 * len(CASES))]
    for process in ranks:
        process.join(600)
        assert process.exitcode == 0
    for rank in range(2):
        answers = [answer[1:] for answer in found if answer[0] == rank]
        for case, (gradients, value, rows, drawn, both) in zip(CASES, answers, strict=True):
            policy = policy_of(case[0])
            expected, loss, all_rows, samples = work(policy, *case[1:])
            allowed = terms(policy.model, 16)
            assert value == pytest.approx(loss, abs=rounding(allowed))
            assert rows == all_rows
            (one_layer, held_one), (all_layers, held_all) = both
            assert (held_one, held_all) == (1, 2), "layers that a rank holds at once"
            for groups in (drawn, one_layer, all_layers):
                assert_same_draws(groups, samples, allowed)
            found_here = [torch.tensor(gradients[name]) for name in expected]
            assert_close_gradients(found_here, expected.values(), allowed)


def assert_same_draws(groups: Drawn, expected: Drawn, terms: int) -> None:
    drawn = [one for group in groups for one in group]
    others = [one for group in expected for one in group]
    assert [one.token_ids for one in drawn] == [one.token_ids for one in others]
    for one, other in zip(drawn, others, strict=True):
        assert_close(one.logprobs, other.logprobs, terms)
    assert len({len(one.token_ids) for one in drawn}) > 3, "they end at different times"


def test_shares_are_consecutive_and_complete() -> None:
    for size in (1, 2, 3):
        parts = [list(Share(rank, size).of(range(7))) for rank in range(size)]
        assert [i for part in parts for i in part] == list(range(7))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert ALONE.gather("x") == ["x"]

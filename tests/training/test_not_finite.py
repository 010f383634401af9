"""Numbers that are none, wherever a model may meet them."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM

from hacrl.agents.learning.learner import Learner
from hacrl.agents.policy.loading import load_policy
from hacrl.agents.policy.policy import Policy
from hacrl.agents.sampling.base import Sample, check_finite
from hacrl.agents.sampling.hugging_face import draw_tokens, sample
from hacrl.config import AgentSpec, recipe_from_dict
from hacrl.errors import NotFinite, UserError
from hacrl.runs.checkpoints import checkpoints
from hacrl.training.train import train

MakeRecipe = Callable[..., dict[str, Any]]
NAN, INF = math.nan, math.inf


class _Spoilt(nn.Module):
    """An output layer whose logits are what they should not be."""

    def __init__(self, head: nn.Module, spoil: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.head = head
        self.spoil = spoil

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.spoil(self.head(hidden))


def _one(logits: torch.Tensor, value: float) -> torch.Tensor:
    logits = logits.clone()
    logits[..., 3] = value
    return logits


SPOILT = {
    "all not a number": lambda logits: logits * NAN,
    "one not a number": lambda logits: _one(logits, NAN),
    "one infinite": lambda logits: _one(logits, INF),
    "none finite": lambda logits: torch.full_like(logits, -INF),
}


@pytest.fixture
def policy(qwen_folder: Path) -> Policy:
    return load_policy("kim", AgentSpec(model=str(qwen_folder), device="cpu"))


def draw(policy: Policy, *, greedy: bool) -> list[list[Sample]]:
    return sample(
        policy,
        [[3, 4], [2]],
        3,
        temperature=1.0,
        max_new_tokens=5,
        batch_size=4,
        seed=0,
        greedy=greedy,
    )


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("kind", SPOILT)
def test_nothing_is_sampled_from_what_is_no_distribution(
    policy: Policy, kind: str, greedy: bool
) -> None:
    policy.model.lm_head = _Spoilt(policy.model.lm_head, SPOILT[kind])
    with pytest.raises(NotFinite, match=r"^agent kim: its logits are not finite at token 0 of"):
        draw(policy, greedy=greedy)


@pytest.mark.parametrize("greedy", [False, True])
def test_a_token_that_can_never_come_is_no_fault(policy: Policy, greedy: bool) -> None:
    policy.model.lm_head = _Spoilt(policy.model.lm_head, lambda logits: _one(logits, -INF))
    groups = draw(policy, greedy=greedy)
    assert all(3 not in one.token_ids for group in groups for one in group)


def test_every_index_is_one_of_the_vocabulary() -> None:
    rows = torch.tensor([[NAN] * 4, [-INF] * 4, [0.0, NAN, 0.0, 0.0]])
    for number in (0.0, 0.5, 1.0 - 2**-53):
        tokens = draw_tokens(rows, torch.full((3,), number, dtype=torch.float64))
        assert bool(((tokens >= 0) & (tokens < 4)).all())


def test_samples_of_an_engine_are_looked_at() -> None:
    check_finite("kim", [Sample([1, 2], [-1.0, -0.0], True)])
    for bad in (NAN, -INF):
        with pytest.raises(NotFinite, match=r"agent kim: .* at token 1 of a response"):
            check_finite("kim", [Sample([1], [-1.0], True), Sample([1, 2], [-1.0, bad], True)])


def test_a_model_that_is_broken_from_the_start(qwen_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(qwen_folder, tmp_path, dirs_exist_ok=True)
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    model.model.norm.weight.data[0] = NAN
    model.save_pretrained(tmp_path)
    with pytest.raises(UserError, match="agent kim: its model's logits are not finite from the"):
        load_policy("kim", AgentSpec(model=str(tmp_path), device="cpu"))


def broken_after(updates: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The update of that number, counted from 1, leaves weights that are no numbers."""
    whole = Learner._step
    done = 0

    def step(self: Learner, loss: float) -> Any:
        nonlocal done
        outcome = whole(self, loss)
        if self._policy.name == "kim":
            done += 1
            if done == updates:
                for parameter in self._policy.model.parameters():
                    parameter.data.fill_(NAN)
        return outcome

    monkeypatch.setattr(Learner, "_step", step)


@pytest.mark.parametrize(("every", "evaluated"), [(1, False), (2, False), (1, True)])
def test_a_run_names_the_agent_and_its_last_good_checkpoint(
    tiny_recipe: MakeRecipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    every: int,
    evaluated: bool,
) -> None:
    raw = tiny_recipe(sharing="nobody", steps=6, checkpoints={"every": every})
    if evaluated:
        raw["evaluation"] = {"tasks": {"held": raw["tasks"]["bits"]}, "every": 1, "limit": 2}
    with monkeypatch.context() as patch:
        broken_after(3, patch)  # in the third step, one update each
        with pytest.raises(UserError) as caught:
            train(recipe_from_dict(raw), tmp_path)
    first, second = str(caught.value).splitlines()
    run = tmp_path / "tiny"
    assert first.startswith("agent kim: its logits are not finite at token 0")
    assert second.startswith(f"Its last good checkpoint is {run}/checkpoints/step-000002; lower")
    assert max(one.step for one in checkpoints(run / "checkpoints")) == 2
    assert not (run / "agents").exists(), "broken agents are no result"
    finished = train(recipe_from_dict(raw), tmp_path, resume=True).path
    assert (finished / "agents" / "kim").is_dir()


def test_a_checkpoint_that_nothing_can_be_sampled_from_is_set_aside(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tiny_recipe(sharing="nobody", steps=2, checkpoints={"every": 1})
    with monkeypatch.context() as patch:
        broken_after(2, patch)  # in the last step: nobody samples any more
        train(recipe_from_dict(raw), tmp_path)
    with pytest.raises(UserError, match="step-000001; lower"):
        train(recipe_from_dict(raw, ["steps=3"]), tmp_path, resume=True)
    root = tmp_path / "tiny" / "checkpoints"
    assert [one.step for one in checkpoints(root)] == [1]
    assert (root / "step-000002.not-finite").is_dir()
    train(recipe_from_dict(raw, ["steps=3"]), tmp_path, resume=True)


def test_a_run_without_a_good_checkpoint_says_so(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_after(1, monkeypatch)
    with pytest.raises(UserError, match=r"There is no good checkpoint; .* --overwrite"):
        train(recipe_from_dict(tiny_recipe(sharing="nobody")), tmp_path)

"""Agents that leave their device in between: everything moves, and only one is there at a time."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from hacrl.agents.policy.policy import Policy
from hacrl.agents.policy.residence import Residence
from hacrl.config import recipe_from_dict
from hacrl.errors import UserError
from hacrl.training.train import train
from scripts.crash_test.comparing import differences

MakeRecipe = Callable[..., dict[str, Any]]


def tensors(models: list[torch.nn.Module], optimizer: torch.optim.Optimizer) -> Iterator[Tensor]:
    for model in models:
        yield from model.parameters()
        yield from model.buffers()
    for state in optimizer.state.values():
        yield from state.values()


@pytest.mark.parametrize("learning", [True, False])
def test_what_the_agent_works_with_is_on_the_device(kim: Policy, learning: bool) -> None:
    """To learn, all; to sample, its model alone: AdamW and the reference would only take room."""
    model, reference = kim.model, copy.deepcopy(kim.model)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    optimizer.zero_grad()
    parameters = len(list(model.parameters()))
    residence = Residence([model, reference], optimizer, torch.device("meta"))
    own, others = [], []
    # The only other device without an accelerator has no way back.
    with pytest.raises(NotImplementedError, match="meta"), residence.awake(learning=learning):
        own, others = (
            [tensor.device.type for tensor in some]
            for some in (model.parameters(), tensors([reference], optimizer))
        )
    assert set(own) == {"meta"}
    assert set(others) == {"meta" if learning else "cpu"}
    # The reference, and two moments and a count of steps for each parameter of the model.
    assert len(others) >= parameters + 3 * parameters


def test_without_a_device_nothing_moves(kim: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer = torch.optim.AdamW(kim.model.parameters())
    monkeypatch.setattr(torch.nn.Module, "to", None)
    with Residence([kim.model], optimizer, None).awake(learning=True):
        pass


def test_agents_work_one_after_another_and_learn_the_same(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tiny_recipe(checkpoints={"every": 1}, update={"kl": 0.01})
    base = raw["agents"]["kim"]["model"]
    for name, rank in (("may", 2), ("max", 4)):  # of one model in memory
        raw["agents"][name] = {"model": base, "lora": {"rank": rank}}
    usual = train(recipe_from_dict(raw), tmp_path / "usual").path
    moves: list[tuple[int, bool]] = []
    move = Residence._move

    def noted(self: Residence, device: torch.device, *, learning: bool) -> None:
        moves.append((id(self), device is self._device))
        move(self, device, learning=learning)

    monkeypatch.setattr(Residence, "_move", noted)
    in_turns = train(recipe_from_dict(raw, ["fleet.in_turns=true"]), tmp_path / "turns").path
    found = [n for n in differences(usual, in_turns) if Path(n).name != "recipe.yaml"]
    assert found == []
    loaded, worked = moves[:4], moves[4:]
    assert len({agent for agent, _ in loaded}) == 4
    assert not any(there for _, there in loaded), "they rest once they are loaded"
    assert len(worked) == 3 * 2 * 4 * 2  # steps, phases, agents, there and back
    for comes, goes in zip(worked[::2], worked[1::2], strict=True):
        assert comes == (goes[0], True)
        assert goes == (comes[0], False)


def test_quantized_weights_cannot_take_turns(tiny_recipe: MakeRecipe) -> None:
    raw = tiny_recipe(fleet={"in_turns": True})
    raw["agents"]["kim"]["lora"] = {"quantization": "nf4"}
    with pytest.raises(UserError, match=r"fleet\.in_turns: the quantized weights of agent kim"):
        recipe_from_dict(raw)

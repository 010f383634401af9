"""What an engine is given: the weights that the learner computes with, adapters merged in."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from hacrl.agents.policy.loading import SharedModels, load_policy
from hacrl.agents.policy.plain_weights import plain_config, plain_weights, write_weights
from hacrl.agents.policy.policy import Policy
from hacrl.config import AgentSpec
from hacrl.config.lora import Lora
from tests.tolerances import assert_close, terms

pytestmark = pytest.mark.numerics

IDS = torch.tensor([[1, 2, 3, 4], [4, 3, 2, 1]])


@torch.no_grad()
def logits(policy: Policy) -> Tensor:
    policy.activate()
    return policy.logits(policy.hidden_states(IDS, torch.ones_like(IDS)))


@torch.no_grad()
def served(policy: Policy, folder: Path) -> Tensor:
    """Logits of the model as another program would load it."""
    plain_config(policy).save_pretrained(folder)
    write_weights(plain_weights(policy, torch.float32).items(), folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    found: Tensor = model(input_ids=IDS).logits
    return found


@torch.no_grad()
def disturb(policy: Policy) -> None:
    generator = torch.Generator().manual_seed(1)
    for key, parameter in policy.model.named_parameters():
        if policy.adapter is None or f".{policy.adapter}." in key:
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)


def allowed(policy: Policy) -> int:
    """Terms of a pass over `IDS`."""
    return terms(policy.model, IDS.shape[1])


def test_a_policy_without_adapter_is_served_as_it_is(
    kim: Policy, lee: Policy, tmp_path: Path
) -> None:
    for policy in (kim, lee):
        assert_close(served(policy, tmp_path / policy.name), logits(policy), allowed(policy))


def test_weights_that_need_no_change_are_not_copied(kim: Policy) -> None:
    own = {parameter.data_ptr() for parameter in kim.model.parameters()}
    assert {value.data_ptr() for value in plain_weights(kim, torch.float32).values()} == own


@pytest.mark.parametrize("quantization", ["none", "nf4"])
def test_the_agents_own_adapter_is_merged_and_no_other(
    qwen_folder: Path, tmp_path: Path, quantization: str
) -> None:
    shared = SharedModels()
    lora = Lora.model_validate(
        {"rank": 2, "alpha": 6, "target_modules": ["q_proj", "down_proj"]}
        | {"quantization": quantization}
    )
    spec = AgentSpec(model=str(qwen_folder), device="cpu", lora=lora)
    kim, may = (load_policy(name, spec, shared=shared) for name in ("kim", "may"))
    disturb(kim)
    before = logits(kim)
    for policy in (kim, may):
        assert_close(served(policy, tmp_path / policy.name), logits(policy), allowed(policy))
    assert not torch.allclose(logits(kim), logits(may), atol=1e-2)
    assert torch.equal(logits(kim), before), "training weights stay as they are"


def test_the_dtype_is_the_engines(kim: Policy) -> None:
    assert {w.dtype for w in plain_weights(kim, torch.bfloat16).values()} == {torch.bfloat16}

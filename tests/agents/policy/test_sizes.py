"""Sizes from configurations agree with models that were loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM

from hacrl.agents.policy.loading import load_policy
from hacrl.agents.policy.sizes import Parameters, count_parameters, memory
from hacrl.config import AgentSpec
from hacrl.config.lora import Lora


def test_parameters_are_counted_without_loading_them(qwen_folder: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(qwen_folder)
    spec = AgentSpec(model=str(qwen_folder))
    assert model.config.tie_word_embeddings
    assert count_parameters("kim", spec, model.config).own == model.num_parameters()


@pytest.mark.parametrize("targets", ["all-linear", ["q_proj", "down_proj"]])
def test_an_adapter_is_counted_apart(llama_folder: Path, targets: list[str]) -> None:
    plain = AutoModelForCausalLM.from_pretrained(llama_folder)
    spec = AgentSpec(model=str(llama_folder), lora=Lora(rank=3, target_modules=targets))
    loaded = load_policy("lee", spec).model
    counted = count_parameters("lee", spec, plain.config)
    assert counted.own == plain.num_parameters()
    assert counted.adapter == sum(p.numel() for p in loaded.parameters() if p.requires_grad)
    assert counted.own + counted.adapter == sum(p.numel() for p in loaded.parameters())


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("bfloat16", 2)])
def test_memory_is_of_the_weights_dtype(dtype: str, size: int) -> None:
    spec = AgentSpec(model="m", dtype=dtype)
    held = memory(Parameters(1000, 800, None), spec, reference=False)
    assert (held.weights, held.gradients, held.adamw) == (1000 * size, 1000 * size, 2000 * size)
    assert held.total == 4000 * size
    assert memory(Parameters(1000, 800, None), spec, reference=True).total == 5000 * size


def test_an_adapter_trains_in_single_precision_and_needs_no_reference() -> None:
    spec = AgentSpec(model="m", dtype="bfloat16", lora=Lora())
    held = memory(Parameters(1000, 800, 10), spec, reference=True)
    assert (held.weights, held.gradients, held.adamw, held.reference) == (2040, 40, 80, 0)
    small = AgentSpec(model="m", dtype="bfloat16", lora=Lora(quantization="nf4"))
    assert memory(Parameters(1000, 800, 10), small, reference=True).weights == 440 + 413

"""Policies that every engine can serve, samplers of them, and what they are compared with."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from hacrl.agents.policy.logprobs import pad, response_logprobs
from hacrl.agents.policy.policy import Policy
from hacrl.agents.sampling import making
from hacrl.agents.sampling.base import Sample
from hacrl.agents.sampling.external import ExternalSampler
from hacrl.agents.sampling.probe import EXACT
from hacrl.config.sampler import VllmSampling
from hacrl.config.schema import Recipe
from hacrl.records import Decoding
from tests.agents.sampling.stand_in import serving

SETTINGS = VllmSampling(enforce_eager=True, cpu_cache=0.25, sleep=False)
PROMPTS = [[3, 4, 5], [6], [7, 8, 9, 10, 11]]
LONG = [3 + i * i % 19 for i in range(300)]
"""Longer than two blocks of vLLM's prefix cache."""
HOW = Decoding(20, 64)


def make_policy(
    name: str, family: str, tokenizer: PreTrainedTokenizerFast, head_dim: int = 32, seed: int = 0
) -> Policy:
    config_class, model_class = {
        "qwen": (Qwen3Config, Qwen3ForCausalLM),
        "llama": (LlamaConfig, LlamaForCausalLM),
    }[family]
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        model = model_class(
            config_class(
                vocab_size=len(tokenizer),
                hidden_size=64,
                intermediate_size=96,
                num_hidden_layers=2,
                num_attention_heads=2,
                num_key_value_heads=1,
                head_dim=head_dim,
                max_position_embeddings=512,
                tie_word_embeddings=family == "qwen",
                initializer_range=0.2,
            )
        ).eval()
    # What a model's authors like to sample with must not come through.
    original = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, repetition_penalty=5.0, top_k=1
    )
    model.generation_config = GenerationConfig(eos_token_id=tokenizer.eos_token_id)
    return Policy(name, model, tokenizer, (tokenizer.eos_token_id, 5), {}, original)


def make_sampler(policy: Policy, kind: str, **changes: Any) -> ExternalSampler:
    """The sampler of a recipe with an engine of that kind."""
    recipe = Recipe.model_validate(
        {
            "name": "t",
            "steps": 1,
            "prompts_per_step": 4,
            "threads": 1,
            "agents": {policy.name: {"model": "x", "sampler": SETTINGS.model_dump() | changes}},
            "tasks": {
                "t": {"source": {"type": "jsonl", "path": "x"}, "verifier": {"type": "exact"}}
            },
            "sampling": {"temperature": 0.6, "batch_size": 64},
        }
    )
    with serving(kind):
        sampler = making.make_sampler(policy, recipe)
    assert isinstance(sampler, ExternalSampler)
    return sampler


def flat(groups: list[list[Sample]]) -> list[Sample]:
    return [one for group in groups for one in group]


@torch.no_grad()
def learners(
    policy: Policy, prompts: list[list[int]], groups: list[list[Sample]], temperature: float
) -> list[list[float]]:
    """The learner's log-probabilities of what was sampled."""
    ids = [prompt for prompt, group in zip(prompts, groups, strict=True) for _ in group]
    samples = flat(groups)
    sequences = pad(ids, [one.token_ids for one in samples], policy.pad_id, policy.device)
    rows = response_logprobs(policy, sequences, temperature).tolist()
    return [row[: len(one.token_ids)] for row, one in zip(rows, samples, strict=True)]


def agree(policy: Policy, prompts: list[list[int]], groups: list[list[Sample]], t: float) -> bool:
    ours = [value for row in learners(policy, prompts, groups, t) for value in row]
    theirs = [value for one in flat(groups) for value in one.logprobs]
    return ours == pytest.approx(theirs, abs=EXACT)


@torch.no_grad()
def change(policy: Policy, amount: float = 0.02) -> None:
    generator = torch.Generator().manual_seed(int(amount * 1e6))
    for parameter in policy.model.parameters():
        parameter.add_(torch.randn(parameter.shape, generator=generator) * amount)

"""A prompt pass shared by a group gives what a pass for each response gives."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from hacrl.agents.learning.scoring import scored, scored_whole
from hacrl.agents.policy.policy import Policy
from hacrl.agents.policy.prompt_pass import can_share_prompts
from hacrl.agents.sampling.hugging_face import sample
from tests.tolerances import assert_close, assert_close_gradients, terms

pytestmark = pytest.mark.numerics

PROMPTS = [[3, 4, 5, 6, 7, 8, 9, 10, 11, 12], [6, 7], [8], [9, 10, 11, 12]]


@pytest.fixture
def gem(kim: Policy) -> Policy:
    """Gemma 3 architecture: windows that slide over half of the layers, shorter than a row."""
    with torch.random.fork_rng([]):
        torch.manual_seed(3)
        model = Gemma3ForCausalLM(
            Gemma3TextConfig(
                vocab_size=len(kim.tokenizer),
                hidden_size=32,
                intermediate_size=48,
                num_hidden_layers=4,
                layer_types=["sliding_attention", "full_attention"] * 2,
                sliding_window=6,
                num_attention_heads=2,
                num_key_value_heads=1,
                head_dim=16,
                max_position_embeddings=256,
                initializer_range=0.4,
            )
        ).eval()
    return dataclasses.replace(kim, name="gem", model=model)


def rows_of(policy: Policy) -> tuple[list[list[int]], list[list[int]]]:
    """Four responses of 1 to 20 tokens to each prompt, in mixed order."""
    random = torch.Generator().manual_seed(1)
    prompts = [PROMPTS[i % 4] for i in range(16)]
    lengths = [1, 20, 7, 3, 13, 1, 2, 9, 5, 17, 4, 1, 11, 6, 8, 12]
    vocabulary = len(policy.tokenizer)
    responses = [torch.randint(3, vocabulary, (n,), generator=random).tolist() for n in lengths]
    return prompts, responses


def scores_and_gradient(
    policy: Policy, score: Callable[..., object], budget: int
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    policy = dataclasses.replace(policy, model=copy.deepcopy(policy.model))
    prompts, responses = rows_of(policy)
    found: dict[int, torch.Tensor] = {}
    for part, logprob_RT, mask_RT in score(prompts, responses, budget, policy):  # type: ignore
        weights = torch.tensor([(-1.0) ** row / (1 + row) for row in part])
        (logprob_RT.sum(dim=1) * weights).sum().backward()
        for row, values, mask in zip(part, logprob_RT, mask_RT, strict=True):
            found[row] = values[mask].detach()
            assert not values[~mask].any()
    gradient = [p.grad for p in policy.model.parameters() if p.grad is not None]
    assert gradient
    return [found[row] for row in range(len(responses))], gradient


@pytest.mark.parametrize("who", ["kim", "lee", "gem"])
@pytest.mark.parametrize("budget", [1, 60, 10_000])
def test_shared_prompts_change_neither_logprobs_nor_gradients(
    who: str, budget: int, request: pytest.FixtureRequest
) -> None:
    policy: Policy = request.getfixturevalue(who)
    assert can_share_prompts(policy)

    def shared(prompts: object, responses: object, tokens: int, mine: Policy) -> object:
        return scored(mine, prompts, responses, tokens, 0.8, nullcontext)  # type: ignore[arg-type]

    def whole(prompts: object, responses: object, tokens: int, mine: Policy) -> object:
        return scored_whole(mine, prompts, responses, 1, 0.8, nullcontext)  # type: ignore[arg-type]

    ours, our_gradient = scores_and_gradient(policy, shared, budget)
    plain, plain_gradient = scores_and_gradient(policy, whole, budget)
    for a, b in zip(ours, plain, strict=True):
        assert_close(a, b, terms(policy.model, 30))
    assert_close_gradients(our_gradient, plain_gradient, terms(policy.model, 30))


def test_sampling_over_sliding_windows_records_exact_logprobs(gem: Policy) -> None:
    groups = sample(gem, PROMPTS, 4, temperature=1.0, max_new_tokens=20, batch_size=64, seed=5)
    prompts = [prompt for prompt in PROMPTS for _ in range(4)]
    samples = [one for group in groups for one in group]
    with torch.no_grad():
        for part, logprob_RT, _ in scored_whole(
            gem, prompts, [one.token_ids for one in samples], 1, 1.0, nullcontext
        ):
            one = samples[part[0]]
            assert_close(logprob_RT[0], one.logprobs, terms(gem.model, 30))

"""Exact log-probabilities of what was sampled; stop ids; seeds."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import GenerationConfig, Qwen3ForCausalLM

from hacrl.agents.policy.loading import load_policy
from hacrl.agents.policy.logprobs import pad, response_logprobs
from hacrl.agents.policy.policy import Policy, save_policy
from hacrl.agents.sampling.base import Sample
from hacrl.agents.sampling.hugging_face import draw_tokens, sample
from hacrl.config import AgentSpec
from tests.tolerances import assert_close, terms

pytestmark = pytest.mark.numerics

PROMPTS = [[3, 4, 5], [6], [7, 8, 9, 10, 11]]


def draw(policy: Policy, **changes: object) -> list[list[Sample]]:
    settings: dict[str, object] = {
        "temperature": 1.0,
        "max_new_tokens": 12,
        "batch_size": 64,
        "seed": 1,
    }
    return sample(policy, PROMPTS, 4, **(settings | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("temperature", [0.6, 1.0])
def test_recorded_logprobs_are_those_of_the_learner(
    kim: Policy, lee: Policy, temperature: float
) -> None:
    for policy in (kim, lee):
        groups = draw(policy, temperature=temperature)
        prompts = [p for p, group in zip(PROMPTS, groups, strict=True) for _ in group]
        samples = [one for group in groups for one in group]
        sequences = pad(prompts, [s.token_ids for s in samples], policy.pad_id, policy.device)
        with torch.no_grad():
            again = response_logprobs(policy, sequences, temperature)
        for row, one in enumerate(samples):
            assert_close(again[row, : len(one.logprobs)], one.logprobs, terms(policy.model, 17))


def test_settings_shipped_with_a_model_do_not_bend_the_distribution(
    kim: Policy, tmp_path: Path
) -> None:
    save_policy(kim, tmp_path)
    GenerationConfig(
        eos_token_id=kim.stop_ids[0], do_sample=True, repetition_penalty=5.0, top_k=1
    ).save_pretrained(tmp_path)
    loaded = load_policy("kim", AgentSpec(model=str(tmp_path), device="cpu"))
    assert draw(loaded) == draw(kim)
    save_policy(loaded, tmp_path / "again")
    again = GenerationConfig.from_pretrained(tmp_path / "again")
    assert again.repetition_penalty == 5.0


def test_a_response_ends_at_the_first_of_all_declared_stop_ids(kim: Policy) -> None:
    stops = (kim.stop_ids[0], 5, 6)
    several = dataclasses.replace(kim, stop_ids=stops)
    samples = [one for group in draw(several, max_new_tokens=40) for one in group]
    for one in samples:
        assert not set(one.token_ids[:-1]) & set(stops)
        assert one.finished == (one.token_ids[-1] in stops)
        assert len(one.token_ids) == len(one.logprobs)
    assert len({one.token_ids[-1] for one in samples if one.finished}) > 1


def test_a_response_that_reaches_the_limit_is_not_finished(kim: Policy) -> None:
    samples = [one for group in draw(kim, max_new_tokens=2) for one in group]
    cut = [one for one in samples if not one.finished]
    assert cut
    assert all(len(one.token_ids) == 2 for one in cut)


def test_the_seed_alone_decides_and_torchs_own_state_is_left_alone(kim: Policy) -> None:
    torch.manual_seed(7)
    state = torch.get_rng_state()
    first = draw(kim)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    assert draw(kim) == first
    assert draw(kim, seed=2) != first


def test_batches_hold_all_prompts_in_order(kim: Policy) -> None:
    groups = draw(kim, batch_size=5)
    assert [len(group) for group in groups] == [4, 4, 4]
    greedy = draw(kim, batch_size=5, temperature=1e-4)
    assert [group[0].token_ids for group in greedy] == [
        group[0].token_ids for group in draw(kim, temperature=1e-4)
    ]


def test_greedy_takes_the_most_likely_token_and_records_its_true_logprob(
    kim: Policy, lee: Policy
) -> None:
    for policy in (kim, lee):
        groups = draw(policy, greedy=True)
        assert groups == draw(policy, greedy=True, seed=2)
        assert all(group == [group[0]] * 4 for group in groups)
        cold = draw(policy, temperature=1e-4)
        assert [g[0].token_ids for g in groups] == [g[0].token_ids for g in cold]
        sequences = pad(PROMPTS, [g[0].token_ids for g in groups], policy.pad_id, policy.device)
        with torch.no_grad():
            again = response_logprobs(policy, sequences, 1.0)
        for row, group in enumerate(groups):
            recorded = group[0].logprobs
            assert_close(again[row, : len(recorded)], recorded, terms(policy.model, 17))


def test_a_row_draws_the_same_whoever_else_is_still_there(kim: Policy) -> None:
    """Rows that end leave the batch; with more end tokens more rows leave, and sooner."""
    long = [one for group in draw(kim, max_new_tokens=40) for one in group]
    stops = (*kim.stop_ids, 5, 6, 7, 8)
    early = [
        one
        for group in draw(dataclasses.replace(kim, stop_ids=stops), max_new_tokens=40)
        for one in group
    ]
    assert len({len(one.token_ids) for one in early}) > 3
    for short, whole in zip(early, long, strict=True):
        assert short.token_ids == whole.token_ids[: len(short.token_ids)]
        assert_close(short.logprobs, whole.logprobs[: len(short.logprobs)], terms(kim.model, 45))


class _Keeps(nn.Module):
    """Makes a table in its first pass and uses it ever after, as some models' own code does."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm
        self.table: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.inference = torch.is_inference_mode_enabled()
        if self.table is None:
            self.table = torch.ones(x.shape[-1])
        y: torch.Tensor = self.norm(x) * self.table
        return y


class _OwnCode(Qwen3ForCausalLM):  # type: ignore[misc]
    """Comes with a model, not with the library."""


def test_inference_mode_is_for_the_librarys_own_models(kim: Policy) -> None:
    keeps = _Keeps(kim.model.base_model.norm)
    kim.model.base_model.norm = keeps
    usual = draw(kim)
    assert keeps.inference
    keeps.table = None
    kim.model.__class__ = _OwnCode
    assert draw(kim) == usual
    assert not keeps.inference
    sequences = pad([PROMPTS[0]], [usual[0][0].token_ids], kim.pad_id, kim.device)
    response_logprobs(kim, sequences, 1.0).sum().backward()
    assert keeps.norm.weight.grad is not None


def test_tokens_are_drawn_with_their_probabilities() -> None:
    probabilities = torch.tensor([0.5, 0.0, 0.3, 0.2, 0.0])
    random = torch.Generator().manual_seed(0)
    rows = 20_000
    uniform = torch.rand(rows, dtype=torch.float64, generator=random)
    tokens = draw_tokens(probabilities.log().expand(rows, -1), uniform)
    shares = torch.bincount(tokens, minlength=5) / rows
    assert shares[[1, 4]].tolist() == [0.0, 0.0]
    torch.testing.assert_close(shares, probabilities, rtol=0, atol=0.01)
    edges = torch.tensor([0.0, 1.0 - 2**-53], dtype=torch.float64)
    assert draw_tokens(probabilities.log().expand(2, -1), edges).tolist() == [0, 3]

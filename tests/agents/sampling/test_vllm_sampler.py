"""Real vLLM engines: exact log-probabilities, draws, weights in step, and what goes wrong."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import psutil
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

from hacrl.agents.policy.adapters import add_adapter
from hacrl.agents.policy.logprobs import pad, response_logprobs
from hacrl.agents.policy.policy import Policy
from hacrl.agents.respondent import Respondent
from hacrl.agents.sampling.hugging_face import Sample
from hacrl.agents.sampling.samplers import HuggingFaceSampler
from hacrl.agents.sampling.vllm.messages import Request
from hacrl.agents.sampling.vllm.sampler import EXACT, VllmSampler
from hacrl.config.lora import Lora
from hacrl.config.sampler import VllmSampling
from hacrl.config.schema import AgentSpec, Recipe
from hacrl.errors import UserError
from hacrl.records import Decoding, Prompt
from tests.agents.conftest import byte_tokenizer, character_tokenizer

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="needs vLLM: make vllm-test"),
]

SETTINGS = VllmSampling(enforce_eager=True, cpu_cache=0.25)
PROMPTS = [[3, 4, 5], [6], [7, 8, 9, 10, 11]]
LONG = [3 + i * i % 19 for i in range(300)]
"""Longer than two blocks of the prefix cache."""
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


def make_sampler(policy: Policy, **changes: Any) -> VllmSampler:
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
    settings = recipe.agents[policy.name].sampler
    assert settings.type == "vllm"
    return VllmSampler(policy, settings, recipe)


@pytest.fixture(scope="module")
def tied() -> Iterator[VllmSampler]:
    """Qwen3 whose output layer is its embedding; characters."""
    sampler = make_sampler(make_policy("kim", "qwen", character_tokenizer()))
    yield sampler
    sampler.close()


@pytest.fixture(scope="module")
def untied() -> Iterator[VllmSampler]:
    """Llama with an output layer of its own; byte-level BPE with merges and a begin token."""
    sampler = make_sampler(make_policy("lee", "llama", byte_tokenizer(begin=True, merges=True)))
    yield sampler
    sampler.close()


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


def alive(group: int) -> list[int]:
    """Processes of a group that have not ended."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


@torch.no_grad()
def change(policy: Policy, amount: float = 0.02) -> None:
    generator = torch.Generator().manual_seed(int(amount * 1e6))
    for parameter in policy.model.parameters():
        parameter.add_(torch.randn(parameter.shape, generator=generator) * amount)


@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.7])
def test_logprobs_are_the_learners_at_every_temperature(
    tied: VllmSampler, untied: VllmSampler, temperature: float
) -> None:
    for sampler in (tied, untied):
        how = dataclasses.replace(HOW, temperature=temperature)
        groups = sampler.sample(PROMPTS, 4, how, seed=1)
        assert [len(group) for group in groups] == [4, 4, 4]
        assert agree(sampler._policy, PROMPTS, groups, temperature)
        assert not agree(sampler._policy, PROMPTS, groups, temperature + 0.5)
        gap = sampler.metrics()["probe_gap"]
        assert gap is not None
        assert gap < EXACT
        assert sampler.exact


def test_the_occasion_alone_decides_what_is_drawn(tied: VllmSampler) -> None:
    first = tied.sample([LONG, *PROMPTS], 4, HOW, seed=1)
    other = tied.sample([LONG, *PROMPTS], 4, HOW, seed=2)
    assert tied.sample([LONG, *PROMPTS], 4, HOW, seed=1) == first
    assert other != first
    assert len({tuple(one.token_ids) for one in first[0]}) == 4, "samples of a prompt differ"


def test_more_prompts_than_fit_at_once(tied: VllmSampler) -> None:
    groups = tied.sample([LONG] * 64, 1, Decoding(2, 64), seed=1)
    assert agree(tied._policy, [LONG] * 64, groups, 1.0)


def test_draws_follow_the_distribution(tied: VllmSampler) -> None:
    """First tokens of many draws against the learner's probabilities: χ² at the 1e-6 level."""
    count = 2000
    (group,) = tied.sample([[3, 4, 5]], count, Decoding(1, 64), seed=3)
    policy = tied._policy
    with torch.no_grad():
        ids = torch.tensor([[3, 4, 5]])
        expected = policy.logits(policy.hidden_states(ids, torch.ones_like(ids)))[0, -1].softmax(0)
    seen = torch.bincount(
        torch.tensor([one.token_ids[0] for one in group]), minlength=len(expected)
    )
    statistic = float(((seen - count * expected) ** 2 / (count * expected)).sum())
    degrees = len(expected) - 1
    assert statistic < degrees + 5.5 * (2 * degrees) ** 0.5 + 15


def test_a_response_ends_at_the_first_of_all_stop_ids(tied: VllmSampler) -> None:
    stops = tied._policy.stop_ids
    assert len(stops) == 2
    samples = flat(tied.sample(PROMPTS, 20, Decoding(40, 64), seed=1))
    for one in samples:
        assert not set(one.token_ids[:-1]) & set(stops)
        assert one.finished == (one.token_ids[-1] in stops)
        assert len(one.token_ids) == len(one.logprobs)
        assert one.finished or len(one.token_ids) == 40
    assert {one.token_ids[-1] for one in samples if one.finished} == set(stops)


def test_greedy_takes_what_hugging_face_takes(tied: VllmSampler, untied: VllmSampler) -> None:
    for sampler in (tied, untied):
        how = dataclasses.replace(HOW, greedy=True)
        plain = HuggingFaceSampler(sampler._policy).sample(PROMPTS, 2, how, seed=1)
        found = sampler.sample(PROMPTS, 2, how, seed=2)
        assert [one.token_ids for one in flat(found)] == [one.token_ids for one in flat(plain)]


def test_prompt_ids_reach_the_engine_as_they_are(untied: VllmSampler) -> None:
    """No begin token is added, none taken away, whatever the tokenizer would do with a text."""
    begin = untied._policy.tokenizer.bos_token_id
    assert begin is not None
    for prompt in ([begin, 20, 21], [20, 21], [begin, begin, 20]):
        request = Request(prompt, 1, 1.0, 0, (), score_prompt=True)
        (drawn,) = untied._engine.draw([request])
        ours = untied._learners(prompt[:1], prompt[1:], 1.0)
        assert drawn.prompt_logprobs == pytest.approx(ours, abs=EXACT)


def test_sampled_ids_are_kept_and_halves_of_characters_are_not_shared(untied: VllmSampler) -> None:
    """A random model writes bytes that are no text, and splits that no tokenizer would make."""
    policy = untied._policy
    respondent = Respondent(policy, HOW, seed=0, sampler=untied)
    prompts = [Prompt("a", "t", "1+1=", ""), Prompt("b", "t", "é", "")]
    rollouts = respondent.sample(prompts, 20, occasion="step 0")
    assert any(one.unshareable == "undecodable" for one in rollouts)
    odd = [
        one
        for one in rollouts
        if policy.tokenizer.encode(one.text, add_special_tokens=False)
        != list(one.token_ids[: -1 if one.finished else None])
    ]
    assert odd
    for one in odd:
        (ours,) = learners(
            policy,
            [respondent.encode(prompts[one.prompt])],
            [[Sample(list(one.token_ids), [], one.finished)]],
            1.0,
        )
        assert ours == pytest.approx(list(one.token_logprobs), abs=EXACT)


def test_every_change_of_the_weights_arrives(tied: VllmSampler, untied: VllmSampler) -> None:
    """With a prompt that the prefix cache holds from before."""
    for sampler in (tied, untied):
        policy = sampler._policy
        for amount in (0.02, 0.03):
            before = sampler.sample([LONG], 4, HOW, seed=1)
            assert agree(policy, [LONG], before, 1.0)
            change(policy, amount)
            assert not agree(policy, [LONG], before, 1.0)
            sampler.weights_changed()
            assert agree(policy, [LONG], sampler.sample([LONG], 4, HOW, seed=1), 1.0)
            assert sampler.exact
            assert (sampler.metrics()["sync_seconds"] or 0) > 0
        assert not list(sampler._engine.folder.glob("*.safetensors"))


@pytest.mark.parametrize("part", ["load", "cache"])
def test_a_sync_that_fails_silently_stops_the_run(
    tied: VllmSampler, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    policy = tied._policy
    tied.sample([LONG], 4, HOW, seed=1)
    change(policy, 0.01)
    tied.weights_changed()
    if part == "load":
        monkeypatch.setattr(tied._engine, "load", lambda: None)
    else:  # the learner goes on in the middle of the exchange
        load = tied._engine.load
        monkeypatch.setattr(tied._engine, "load", lambda: (load(), change(policy, 0.015)))
    with pytest.raises(
        UserError, match=r"agent kim: .* disagree .*-\d\.\d+ and -\d\.\d+ nats .* 0\.001 is allowed"
    ):
        tied.sample([LONG], 4, HOW, seed=1)
    monkeypatch.undo()
    tied.weights_changed()
    assert agree(policy, [LONG], tied.sample([LONG], 4, HOW, seed=1), 1.0)


def test_an_adapter_is_served_merged() -> None:
    policy = make_policy("may", "llama", character_tokenizer())
    lora = Lora.model_validate({"rank": 2, "alpha": 8})
    add_adapter("may", policy.model, AgentSpec(model="x", lora=lora), seed=0)
    policy = dataclasses.replace(policy, adapter="may")
    policy.activate()
    sampler = make_sampler(policy)
    try:
        before = sampler.sample(PROMPTS, 4, HOW, seed=1)
        assert agree(policy, PROMPTS, before, 1.0)
        with torch.no_grad():
            for key, parameter in policy.model.named_parameters():
                if ".may." in key:
                    parameter.add_(0.03)
        assert not agree(policy, PROMPTS, before, 1.0)
        sampler.weights_changed()
        assert agree(policy, PROMPTS, sampler.sample(PROMPTS, 4, HOW, seed=1), 1.0)
    finally:
        sampler.close()


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a core for each of two workers")
def test_an_engine_over_two_devices_gets_every_change_of_the_weights() -> None:
    """On a CPU a device is a process; both end with the engine."""
    policy = make_policy("lee", "llama", byte_tokenizer(begin=True, merges=True))
    sampler = make_sampler(policy, tensor_parallel_size=2)
    group = sampler._engine.pid  # the engine leads a process group of its own
    try:
        before = sampler.sample(PROMPTS, 4, HOW, seed=1)
        assert agree(policy, PROMPTS, before, 1.0)
        change(policy)
        assert not agree(policy, PROMPTS, before, 1.0)
        sampler.weights_changed()
        assert agree(policy, PROMPTS, sampler.sample(PROMPTS, 4, HOW, seed=1), 1.0)
        assert len(alive(group)) > 2
    finally:
        sampler.close()
    deadline = time.monotonic() + 30
    while alive(group) and time.monotonic() < deadline:  # multiprocessing's own helper is last
        time.sleep(0.1)
    assert alive(group) == []


def test_half_precision_is_never_called_exact() -> None:
    sampler = make_sampler(make_policy("kim", "qwen", character_tokenizer()), dtype="float16")
    try:
        sampler.sample(PROMPTS, 4, HOW, seed=1)
        assert not sampler.exact
        gap = sampler.metrics()["probe_gap"]
        assert gap is not None
        assert EXACT / 10 < gap < 0.1
    finally:
        sampler.close()


def test_a_model_that_vllm_cannot_serve_is_refused_by_name() -> None:
    policy = make_policy("kim", "qwen", character_tokenizer(), head_dim=24)
    with pytest.raises(UserError, match=r"agent kim: .*head_dim=24.*use agents\.kim\.sampler: hf"):
        make_sampler(policy)


def test_engines_that_start_at_once_do_not_hinder_each_other() -> None:
    def start(policy: Policy) -> list[list[Sample]]:
        sampler = make_sampler(policy)
        try:
            return sampler.sample(PROMPTS, 2, HOW, seed=1)
        finally:
            sampler.close()

    policies = [make_policy(n, "qwen", character_tokenizer()) for n in ("kim", "lee", "may")]
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(start, policies))
    assert found == [found[0]] * 3


def test_an_engine_that_dies_while_it_draws_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sampler = make_sampler(make_policy("kim", "qwen", character_tokenizer()))
    send: Callable[..., None] = sampler._engine._connection.send

    def send_and_kill(message: object) -> None:
        send(message)
        os.kill(sampler._engine.pid, 9)

    sampler.sample(PROMPTS, 1, HOW, seed=1)
    monkeypatch.setattr(sampler._engine._connection, "send", send_and_kill, raising=False)
    with pytest.raises(UserError, match=r"agent kim: .* killed, most likely for lack of memory"):
        sampler.sample(PROMPTS, 1, HOW, seed=1)

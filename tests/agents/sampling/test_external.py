"""What is asked of every engine, of vLLM where it is installed: exact log-probabilities, draws,
weights in step, failures of one line."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from hacrl.agents.policy.adapters import add_adapter
from hacrl.agents.respondent import Respondent
from hacrl.agents.sampling.engines.base import Request
from hacrl.agents.sampling.external import ExternalSampler
from hacrl.agents.sampling.hugging_face import HuggingFaceSampler
from hacrl.agents.sampling.probe import EXACT
from hacrl.config.agents import AgentSpec
from hacrl.config.lora import Lora
from hacrl.errors import NotFinite, UserError
from hacrl.records import Decoding, Prompt
from tests.agents.conftest import byte_tokenizer, character_tokenizer
from tests.agents.sampling.served import (
    HOW,
    LONG,
    PROMPTS,
    agree,
    change,
    flat,
    learners,
    make_policy,
    make_sampler,
)
from tests.agents.sampling.stand_in import KINDS, StandInEngine


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def tied(kind: str) -> Iterator[ExternalSampler]:
    """Qwen3 whose output layer is its embedding; characters."""
    sampler = make_sampler(make_policy("kim", "qwen", character_tokenizer()), kind)
    yield sampler
    sampler.close()


@pytest.fixture(scope="module")
def untied(kind: str) -> Iterator[ExternalSampler]:
    """Llama with an output layer of its own; byte-level BPE with merges and a begin token."""
    policy = make_policy("lee", "llama", byte_tokenizer(begin=True, merges=True))
    sampler = make_sampler(policy, kind)
    yield sampler
    sampler.close()


@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.7])
def test_logprobs_are_the_learners_at_every_temperature(
    tied: ExternalSampler, untied: ExternalSampler, temperature: float
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


def test_the_occasion_alone_decides_what_is_drawn(tied: ExternalSampler) -> None:
    first = tied.sample([LONG, *PROMPTS], 4, HOW, seed=1)
    other = tied.sample([LONG, *PROMPTS], 4, HOW, seed=2)
    assert tied.sample([LONG, *PROMPTS], 4, HOW, seed=1) == first
    assert other != first
    assert len({tuple(one.token_ids) for one in first[0]}) == 4, "samples of a prompt differ"


def test_more_prompts_than_fit_at_once(tied: ExternalSampler) -> None:
    groups = tied.sample([LONG] * 64, 1, Decoding(2, 64), seed=1)
    assert agree(tied._policy, [LONG] * 64, groups, 1.0)


def test_draws_follow_the_distribution(tied: ExternalSampler) -> None:
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


def test_a_response_ends_at_the_first_of_all_stop_ids(tied: ExternalSampler) -> None:
    stops = tied._policy.stop_ids
    assert len(stops) == 2
    samples = flat(tied.sample(PROMPTS, 20, Decoding(40, 64), seed=1))
    for one in samples:
        assert not set(one.token_ids[:-1]) & set(stops)
        assert one.finished == (one.token_ids[-1] in stops)
        assert len(one.token_ids) == len(one.logprobs)
        assert one.finished or len(one.token_ids) == 40
    assert {one.token_ids[-1] for one in samples if one.finished} == set(stops)


def test_greedy_takes_what_hugging_face_takes(
    tied: ExternalSampler, untied: ExternalSampler
) -> None:
    for sampler in (tied, untied):
        how = dataclasses.replace(HOW, greedy=True)
        plain = HuggingFaceSampler(sampler._policy).sample(PROMPTS, 2, how, seed=1)
        found = sampler.sample(PROMPTS, 2, how, seed=2)
        assert [one.token_ids for one in flat(found)] == [one.token_ids for one in flat(plain)]


def test_prompt_ids_reach_the_engine_as_they_are(untied: ExternalSampler) -> None:
    """No begin token is added, none taken away, whatever the tokenizer would do with a text."""
    begin = untied._policy.tokenizer.bos_token_id
    assert begin is not None
    for prompt in ([begin, 20, 21], [20, 21], [begin, begin, 20]):
        request = Request(prompt, 1, 1.0, 0, (), score_prompt=True)
        (drawn,) = untied._engine.draw([request])
        ours = untied._probe.learner_logprobs(prompt[:1], prompt[1:], 1.0)
        assert drawn.prompt_logprobs == pytest.approx(ours, abs=EXACT)


def test_sampled_ids_are_kept_and_halves_of_characters_are_not_shared(
    untied: ExternalSampler,
) -> None:
    """A random model writes bytes that are no text, and splits that no tokenizer would make."""
    policy = untied._policy
    respondent = Respondent(policy, HOW, seed=0, sampler=untied)
    prompts = [Prompt("a", "t", "1+1=", ""), Prompt("b", "t", "é", "")]
    rollouts = respondent.sample(prompts, 20, occasion="step 0")
    assert any(one.unshareable == "undecodable" for one in rollouts)
    drawn = respondent._drawn
    odd = [
        (one, drawn[one.prompt, one.sample])
        for one in rollouts
        if policy.tokenizer.encode(one.text, add_special_tokens=False)
        != drawn[one.prompt, one.sample].token_ids[: -1 if one.finished else None]
    ]
    assert odd
    for rollout, sample in odd:
        (ours,) = learners(policy, [respondent.encode(prompts[rollout.prompt])], [[sample]], 1.0)
        assert ours == pytest.approx(sample.logprobs, abs=EXACT)
        assert rollout.logprob == pytest.approx(sum(sample.logprobs), abs=EXACT * rollout.length)


def test_every_change_of_the_weights_arrives(
    tied: ExternalSampler, untied: ExternalSampler
) -> None:
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


@pytest.mark.parametrize("part", ["load", "cache"])
def test_a_sync_that_fails_silently_stops_the_run(
    tied: ExternalSampler, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    policy = tied._policy
    tied.sample([LONG], 4, HOW, seed=1)
    change(policy, 0.01)
    tied.weights_changed()
    if part == "load":
        monkeypatch.setattr(tied._engine, "load", lambda weights: None)
    else:  # the learner goes on in the middle of the exchange
        load = tied._engine.load

        def load_late(weights: Any) -> None:
            load(weights)
            change(policy, 0.015)

        monkeypatch.setattr(tied._engine, "load", load_late)
    with pytest.raises(
        UserError, match=r"agent kim: .* disagree .*-\d\.\d+ and -\d\.\d+ nats .* 0\.001 is allowed"
    ):
        tied.sample([LONG], 4, HOW, seed=1)
    monkeypatch.undo()
    tied.weights_changed()
    assert agree(policy, [LONG], tied.sample([LONG], 4, HOW, seed=1), 1.0)


def test_an_adapter_is_served_merged(kind: str) -> None:
    policy = make_policy("may", "llama", character_tokenizer())
    lora = Lora.model_validate({"rank": 2, "alpha": 8})
    add_adapter("may", policy.model, AgentSpec(model="x", lora=lora), seed=0)
    policy = dataclasses.replace(policy, adapter="may")
    policy.activate()
    sampler = make_sampler(policy, kind)
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


def test_half_precision_is_never_called_exact(kind: str) -> None:
    policy = make_policy("kim", "qwen", character_tokenizer())
    sampler = make_sampler(policy, kind, dtype="float16")
    try:
        sampler.sample(PROMPTS, 4, HOW, seed=1)
        assert not sampler.exact
        gap = sampler.metrics()["probe_gap"]
        assert gap is not None
        assert EXACT / 10 < gap < 0.1
    finally:
        sampler.close()


def test_a_closed_engine_draws_no_more(kind: str) -> None:
    sampler = make_sampler(make_policy("kim", "qwen", character_tokenizer()), kind)
    sampler.sample(PROMPTS, 1, HOW, seed=1)
    sampler.close()
    sampler.close()
    with pytest.raises(UserError, match=r"^agent kim: \S+ engine: [^\n]+$"):
        sampler.sample(PROMPTS, 1, HOW, seed=1)


# What follows needs an engine that does as it is told.


def standing_in(**changes: Any) -> tuple[ExternalSampler, StandInEngine]:
    sampler = make_sampler(make_policy("kim", "qwen", character_tokenizer()), "stand-in", **changes)
    assert isinstance(sampler._engine, StandInEngine)
    return sampler, sampler._engine


@pytest.mark.parametrize("sleep", [True, False])
def test_an_engine_sleeps_while_its_learner_learns_where_it_can(sleep: bool) -> None:
    sampler, engine = standing_in(sleep=sleep)
    policy = sampler._policy
    for seed in (1, 2, 3):
        groups = sampler.sample(PROMPTS, 1, HOW, seed=seed)
        assert agree(policy, PROMPTS, groups, 1.0)
        if seed == 1:
            change(policy)
            sampler.weights_changed()
    probe_and_draw = ["draw"] * 3
    assert engine.calls == ["start", "sleep"] + (
        ["load", *probe_and_draw, "sleep"] * 3
        if sleep
        else [*probe_and_draw, "sleep", "load", *probe_and_draw, "sleep", "draw", "sleep"]
    )


def test_the_first_prompt_is_the_probes_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler, engine = standing_in()
    seen: list[Request] = []
    draw = engine.draw
    monkeypatch.setattr(engine, "draw", lambda requests: seen.extend(requests) or draw(requests))
    sampler.sample(PROMPTS, 1, HOW, seed=1)
    sampler.weights_changed()
    sampler.sample(PROMPTS[::-1], 1, HOW, seed=1)
    assert [request.prompt_ids for request in seen] == [
        *([PROMPTS[0]] * 2 + PROMPTS),
        *([PROMPTS[0]] * 2 + PROMPTS[::-1]),
    ]
    assert len({request.seed for request in seen[2:5]}) == 3


def test_a_gap_is_refused_beyond_the_tolerance_and_reported_below() -> None:
    sampler, engine = standing_in(tolerance=10.0)
    sampler.sample(PROMPTS, 1, HOW, seed=1)
    change(sampler._policy, 0.05)
    engine.load = lambda weights: None  # type: ignore[method-assign]
    sampler.weights_changed()
    sampler.sample(PROMPTS, 1, HOW, seed=1)
    gap = sampler.metrics()["probe_gap"]
    assert gap is not None
    assert 1e-3 < gap < 10
    assert not sampler.exact
    strict, engine = standing_in(tolerance=gap / 2)
    strict.sample(PROMPTS, 1, HOW, seed=1)
    change(strict._policy, 0.05)
    engine.load = lambda weights: None  # type: ignore[method-assign]
    strict.weights_changed()
    with pytest.raises(UserError, match="agent kim: its stand-in engine and its learner disagree"):
        strict.sample(PROMPTS, 1, HOW, seed=1)


def test_a_learner_that_computes_no_numbers_is_named_as_the_cause() -> None:
    sampler, _ = standing_in()
    sampler.sample(PROMPTS, 1, HOW, seed=1)
    with torch.no_grad():
        sampler._policy.model.get_input_embeddings().weight.fill_(torch.inf)
    with pytest.raises(NotFinite, match="agent kim: its logits are not finite on the probe's"):
        sampler._probe.gap(sampler._engine, PROMPTS[0], 16)


@pytest.mark.parametrize("call", ["load", "draw", "sleep"])
def test_an_engine_that_dies_gives_one_line_and_is_closed(
    monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    sampler, engine = standing_in(sleep=True)
    sampler.sample(PROMPTS, 1, HOW, seed=1)

    def die(*_: object) -> None:
        engine.failure = "it was struck by lightning"
        engine._called(call)

    monkeypatch.setattr(engine, call, die)
    with pytest.raises(UserError) as caught:
        sampler.sample(PROMPTS, 1, HOW, seed=2)
    assert str(caught.value) == "agent kim: stand-in engine: it was struck by lightning"
    assert engine.calls[-2:] == [call, "close"]


def test_an_engine_that_does_not_start_gives_one_line_and_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engines: list[StandInEngine] = []

    def refuse(engine: StandInEngine, *_: object) -> None:
        engines.append(engine)
        engine.failure = "it knows no such model"
        engine._called("start")

    monkeypatch.setattr(StandInEngine, "start", refuse)
    with pytest.raises(UserError, match=r"^agent kim: stand-in engine: it knows no such model$"):
        standing_in()
    assert [engine.calls for engine in engines] == [["start", "close"]]


def test_positions_are_those_of_engine_and_policy() -> None:
    assert standing_in()[0].positions == 512
    assert standing_in(max_model_len=64)[0].positions == 64
    assert standing_in(max_model_len=2048)[0].positions == 512

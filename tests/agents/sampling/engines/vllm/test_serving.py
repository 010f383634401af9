"""Real vLLM engines: what no other engine is asked."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec

import psutil
import pytest

from hacrl.agents.policy.policy import Policy
from hacrl.agents.sampling.base import Sample
from hacrl.agents.sampling.engines.hosted import HostedEngine
from hacrl.agents.sampling.engines.process import EngineProcess
from hacrl.agents.sampling.external import ExternalSampler
from hacrl.errors import UserError
from tests.agents.conftest import byte_tokenizer, character_tokenizer
from tests.agents.sampling.served import HOW, PROMPTS, agree, change, make_policy
from tests.agents.sampling.served import make_sampler as make_sampler_of

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="needs vLLM: make vllm-test"),
]


def make_sampler(policy: Policy, **changes: object) -> ExternalSampler:
    return make_sampler_of(policy, "vllm", **changes)


def process(sampler: ExternalSampler) -> EngineProcess:
    assert isinstance(sampler._engine, HostedEngine)
    return sampler._engine.process


def alive(group: int) -> list[int]:
    """Processes of a group that have not ended."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a core for each of two workers")
def test_an_engine_over_two_devices_gets_every_change_of_the_weights() -> None:
    """On a CPU a device is a process; both end with the engine."""
    policy = make_policy("lee", "llama", byte_tokenizer(begin=True, merges=True))
    sampler = make_sampler(policy, tensor_parallel_size=2)
    group = process(sampler).pid  # the engine leads a process group of its own
    try:
        before = sampler.sample(PROMPTS, 4, HOW, seed=1)
        assert agree(policy, PROMPTS, before, 1.0)
        change(policy)
        assert not agree(policy, PROMPTS, before, 1.0)
        sampler.weights_changed()
        assert agree(policy, PROMPTS, sampler.sample(PROMPTS, 4, HOW, seed=1), 1.0)
        assert len(alive(group)) > 2
        assert not list(process(sampler).folder.glob("*.safetensors"))
    finally:
        sampler.close()
    deadline = time.monotonic() + 30
    while alive(group) and time.monotonic() < deadline:  # multiprocessing's own helper is last
        time.sleep(0.1)
    assert alive(group) == []


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
    send: Callable[..., None] = process(sampler)._connection.send

    def send_and_kill(message: object) -> None:
        send(message)
        os.kill(process(sampler).pid, 9)

    sampler.sample(PROMPTS, 1, HOW, seed=1)
    monkeypatch.setattr(process(sampler)._connection, "send", send_and_kill, raising=False)
    with pytest.raises(UserError, match=r"agent kim: .* killed, most likely for lack of memory"):
        sampler.sample(PROMPTS, 1, HOW, seed=1)

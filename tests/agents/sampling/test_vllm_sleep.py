"""When an engine sleeps and what wakes it, with stand-ins for vLLM: its CPU build has no sleep."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hacrl.agents.sampling.vllm import sampler as vllm_sampler
from hacrl.agents.sampling.vllm.engine import Engine
from hacrl.agents.sampling.vllm.messages import Drawn, Request
from tests.agents.conftest import character_tokenizer
from tests.agents.sampling.test_vllm_sampler import HOW, PROMPTS, make_policy, make_sampler


@pytest.mark.parametrize(
    ("on_cpu", "sleep", "sleeps"), [(False, True, True), (False, False, False), (True, True, False)]
)
def test_an_engine_sleeps_while_its_learner_learns_where_it_can(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, on_cpu: bool, sleep: bool, sleeps: bool
) -> None:
    calls: list[str] = []
    given: dict[str, Any] = {}

    class Client:
        def __init__(self, *_: object) -> None:
            self.folder = tmp_path

        def start(self, _: object, *, cpu: dict[str, Any], gpu: dict[str, Any]) -> bool:
            given.update(cpu=cpu, gpu=gpu)
            return on_cpu

        def draw(self, requests: Sequence[Request]) -> list[Drawn]:
            calls.append("draw")
            return [
                Drawn([5], [-1.0], True, [-1.0] * (len(one.prompt_ids) - 1) * one.score_prompt)
                for one in requests
            ]

        def load(self) -> None:
            calls.append("load")

        def sleep(self) -> None:
            calls.append("sleep")

    monkeypatch.setattr(vllm_sampler, "VllmClient", Client)
    monkeypatch.setattr(vllm_sampler, "find_spec", lambda _: object())
    policy = make_policy("kim", "qwen", character_tokenizer())
    sampler = make_sampler(policy, sleep=sleep, tolerance=1e6)  # the stand-in knows no model
    sampler.sample(PROMPTS, 1, HOW, seed=1)
    sampler.weights_changed()
    sampler.sample(PROMPTS, 1, HOW, seed=2)
    probe_and_draws = ["draw"] * 3
    assert calls == (
        ["sleep", *(["load", *probe_and_draws, "sleep"] * 2)]
        if sleeps
        else [*probe_and_draws, "load", *probe_and_draws]
    )
    assert given["gpu"]["enable_sleep_mode"] is sleep
    assert "enable_sleep_mode" not in given["cpu"]


def test_a_sleeping_engine_gets_its_weights_before_its_cache(tmp_path: Path) -> None:
    calls: list[object] = []
    engine = Engine(tmp_path, busy=lambda: None)
    engine._llm = SimpleNamespace(
        sleep=lambda level: calls.append(("sleep", level)),
        wake_up=lambda tags: calls.append(("wake", *tags)),
        collective_rpc=lambda function, args: calls.append("reload"),
    )
    engine.load()
    engine.sleep()
    engine.load()
    engine.load()
    assert calls == [
        *("reload", ("sleep", 2)),
        *(("wake", "weights"), "reload", ("wake", "kv_cache")),
        "reload",
    ]

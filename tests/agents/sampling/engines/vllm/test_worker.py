"""When a vLLM engine sleeps and what wakes it, without vLLM: its CPU build has no sleep."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hacrl.agents.sampling.engines.vllm.worker import VllmWorker


class Llm:
    """Notes what it is asked."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.calls: list[object] = []

    def sleep(self, level: int) -> None:
        self.calls.append(("sleep", level))

    def wake_up(self, tags: list[str]) -> None:
        self.calls.append(("wake", *tags))

    def collective_rpc(self, function: object, args: tuple[str]) -> None:
        self.calls.append("reload")


def started(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *, on_cpu: bool, sleeps: bool
) -> tuple[VllmWorker, Llm]:
    platform = SimpleNamespace(is_cpu=lambda: on_cpu)
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(LLM=Llm))
    monkeypatch.setitem(sys.modules, "vllm.platforms", SimpleNamespace(current_platform=platform))
    monkeypatch.setattr(VllmWorker, "draw", lambda *_: [])
    worker = VllmWorker(folder, busy=lambda: None)
    worker.start({"dtype": "float32"}, cpu={"c": 1}, gpu={"g": 1}, sleeps=sleeps)
    return worker, worker._llm


@pytest.mark.parametrize(
    ("on_cpu", "sleeps", "expected"),
    [(False, True, True), (False, False, False), (True, True, False)],
)
def test_an_engine_sleeps_where_it_can_and_is_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, on_cpu: bool, sleeps: bool, expected: bool
) -> None:
    worker, llm = started(monkeypatch, tmp_path, on_cpu=on_cpu, sleeps=sleeps)
    assert worker.sleep() is expected
    assert llm.calls == [("sleep", 2)] * expected
    assert llm.options["dtype"] == "float32"
    assert ("c" in llm.options, "g" in llm.options) == (on_cpu, not on_cpu)


def test_a_sleeping_engine_gets_its_weights_before_its_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    worker, llm = started(monkeypatch, tmp_path, on_cpu=False, sleeps=True)
    worker.load()
    worker.sleep()
    worker.load()
    worker.load()
    assert llm.calls == [
        *("reload", ("sleep", 2)),
        *(("wake", "weights"), "reload", ("wake", "kv_cache")),
        "reload",
    ]

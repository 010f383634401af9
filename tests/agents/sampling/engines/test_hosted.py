"""An engine in a process of its own, with a worker that needs no library."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
import torch
from filelock import FileLock
from transformers import LlamaConfig

from hacrl.agents.sampling.engines import hosted
from hacrl.agents.sampling.engines.base import Drawn, EngineError, Request
from hacrl.agents.sampling.engines.hosted import HostedEngine
from tests.agents.sampling.engines.test_process import ROOT, WORKER, gone

CONFIG = LlamaConfig(vocab_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=1)


def weights(number: int) -> list[tuple[str, torch.Tensor]]:
    return [("number", torch.tensor([number]))]


def request(seed: int) -> Request:
    return Request([1], max_new_tokens=2, temperature=1.0, seed=seed, stop_ids=())


def make(*, seconds: float = 60.0, **options: object) -> HostedEngine:
    return HostedEngine(
        "number",
        WORKER,
        agent="kim",
        seconds=seconds,
        options=options,
        environment={"PYTHONPATH": str(ROOT)},
        deaths={signal.SIGILL: "it met an instruction that it does not know"},
    )


@pytest.fixture
def engine() -> Iterator[HostedEngine]:
    engine = make(sleeps=True)
    yield engine
    engine.close()


def test_a_worker_is_started_gets_weights_draws_sleeps_and_is_ended(engine: HostedEngine) -> None:
    engine.start(CONFIG, weights(7))
    assert engine.draw([request(1), request(2)]) == [
        Drawn([7, 1], [-1.0, -1.0], False, []),
        Drawn([7, 2], [-1.0, -1.0], False, []),
    ]
    assert engine.sleep()
    engine.load(weights(8))
    assert engine.draw([request(3)])[0].token_ids == [8, 3]
    assert not list(engine.process.folder.glob("*.safetensors"))
    engine.close()
    assert gone(engine.process)
    engine.close()
    with pytest.raises(EngineError, match="it has been ended"):
        engine.draw([request(1)])


def test_a_library_that_refuses_is_quoted_with_a_remedy() -> None:
    engine = make(tensor_parallel=2)
    message = (
        r"^TypeError: .*'tensor_parallel'; change its settings, or use agents\.kim\.sampler: hf$"
    )
    with pytest.raises(EngineError, match=message):
        engine.start(CONFIG, weights(7))
    assert gone(engine.process)


def test_a_death_is_explained_where_its_cause_is_known(engine: HostedEngine) -> None:
    engine.start(CONFIG, weights(7))
    with pytest.raises(EngineError, match=r"^it met an instruction that it does not know$"):
        engine.draw([request(signal.SIGILL)])
    assert gone(engine.process)


def test_engines_start_one_after_another_and_wait_for_each_other_with_an_end() -> None:
    engine = make(seconds=0.5, sleeps=False)
    with (
        FileLock(hosted._LOCK),
        pytest.raises(
            EngineError, match=r"for 0\.5 s; try again, or raise agents\.kim\.sampler\.s"
        ),
    ):
        engine.start(CONFIG, weights(7))
    assert gone(engine.process)


def test_one_that_was_never_started_can_be_closed(engine: HostedEngine) -> None:
    engine.close()

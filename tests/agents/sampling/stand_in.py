"""An engine without a library behind it, and the engines that the tests of samplers run with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import groupby
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedConfig

from hacrl.agents.sampling.engines.base import Drawn, EngineError, Request
from hacrl.agents.sampling.making import ENGINES
from hacrl.config.sampler import EngineSampling

KINDS = [
    "stand-in",
    pytest.param(
        "vllm",
        marks=[
            pytest.mark.vllm,
            pytest.mark.skipif(find_spec("vllm") is None, reason="needs vLLM: make vllm-test"),
        ],
    ),
]


class StandInEngine:
    """A model of its own in this process, which passes over whole sequences. See `Engine`.

    Asleep it has no weights, and says so if it is to draw.

    Attributes:
        failure: what the next call fails with, where it is not None.
        calls: names of all calls so far.
    """

    name = "stand-in"

    def __init__(
        self,
        settings: EngineSampling,
        *,
        agent: str,
        dtype: str,
        batch_size: int,
        threads: int | None,
        trust_remote_code: bool,
    ) -> None:
        self.calls: list[str] = []
        self.failure: str | None = None
        self._sleeps = settings.sleep
        self._dtype = getattr(torch, dtype)
        self._model: Any = None
        self._ready = False

    def start(self, config: PreTrainedConfig, weights: Iterable[tuple[str, Tensor]]) -> None:
        self._called("start")
        self._model = AutoModelForCausalLM.from_config(
            config, dtype=self._dtype, attn_implementation="eager"
        ).eval()
        self._take(weights)

    def load(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        self._called("load")
        self._take(weights)

    @torch.no_grad()
    def draw(self, requests: Sequence[Request]) -> list[Drawn]:
        self._called("draw")
        if not self._ready:
            raise EngineError("it has no weights")
        drawn: dict[int, Drawn] = {}
        by_length = sorted(range(len(requests)), key=lambda i: len(requests[i].prompt_ids))
        for _, numbers in groupby(by_length, lambda i: len(requests[i].prompt_ids)):
            group = list(numbers)
            parts = _draw([requests[i] for i in group], self._logits)
            drawn |= zip(group, parts, strict=True)
        return [drawn[i] for i in range(len(requests))]

    @torch.no_grad()
    def sleep(self) -> bool:
        self._called("sleep")
        if self._sleeps:
            for parameter in self._model.parameters():
                parameter.fill_(torch.nan)
            self._ready = False
        return self._sleeps

    def close(self) -> None:
        self.calls.append("close")
        self.failure = "it has been closed"

    def _logits(self, ids: Tensor) -> Tensor:
        logits: Tensor = self._model(ids, use_cache=False).logits
        return logits.float()

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.failure is not None:
            raise EngineError(self.failure)

    def _take(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Tied weights come once."""
        taken = dict(weights)
        assert {weight.dtype for weight in taken.values()} == {self._dtype}
        missing, unexpected = self._model.load_state_dict(taken, strict=False)
        assert not unexpected
        assert set(missing) <= set(self._model.all_tied_weights_keys)
        self._ready = True


def _draw(requests: Sequence[Request], logits: Callable[[Tensor], Tensor]) -> list[Drawn]:
    """Responses to prompts of one length, so that nothing needs padding."""
    random = [torch.Generator().manual_seed(request.seed) for request in requests]
    rows = [list(request.prompt_ids) for request in requests]
    logprobs: list[list[float]] = [[] for _ in requests]
    scored: list[list[float]] = [[] for _ in requests]
    going = list(range(len(requests)))
    while going:
        ids = torch.tensor([rows[i] for i in going])
        for i, row in zip(going, logits(ids), strict=True):
            request = requests[i]
            if request.score_prompt and not logprobs[i] and len(rows[i]) > 1:
                wanted = torch.tensor(rows[i][1:])[:, None]
                scored[i] = row[:-1].log_softmax(1).gather(1, wanted)[:, 0].tolist()
            last = (row[-1] / (request.temperature or 1.0)).log_softmax(0)
            token = torch.multinomial(last.double().exp(), 1, generator=random[i])
            rows[i].append(int(token if request.temperature else last.argmax()))
            logprobs[i].append(float(last[rows[i][-1]]))
        going = [
            i
            for i in going
            if len(logprobs[i]) < requests[i].max_new_tokens
            and rows[i][-1] not in requests[i].stop_ids
        ]
    return [
        Drawn(row[len(request.prompt_ids) :], own, row[-1] in request.stop_ids, prompt)
        for request, row, own, prompt in zip(requests, rows, logprobs, scored, strict=True)
    ]


@contextmanager
def serving(kind: str) -> Iterator[None]:
    """Where it says `stand-in`, `sampler: vllm` makes a stand-in."""
    with pytest.MonkeyPatch.context() as patch:
        if kind == "stand-in":
            patch.setitem(ENGINES, "vllm", StandInEngine)  # type: ignore[arg-type]
        yield

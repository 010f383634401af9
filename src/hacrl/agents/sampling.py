"""Sampling with Hugging Face `generate`, and the exact log-probabilities of what was sampled."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    TemperatureLogitsWarper,
)

from hacrl.agents.policy import Policy
from hacrl.seeding import derive_seed

__all__ = ["Sample", "sample"]


_FULL_DISTRIBUTION = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}


@dataclass(frozen=True, slots=True)
class Sample:
    """One response: ids up to and including the end token, their log-probabilities in nats."""

    token_ids: list[int]
    logprobs: list[float]
    finished: bool


class _LogProbRecorder(LogitsProcessor):
    """Keeps the log-probability of each sampled token, without keeping the logits.

    A logits processor sees the scores before a token is drawn, so the token of one call is found at
    the end of the ids of the next. Only one step's distribution is held at a time.
    """

    def __init__(self) -> None:
        self._distribution: Tensor | None = None
        self._columns: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        self._gather(input_ids)
        self._distribution = scores.float().log_softmax(dim=-1)
        return scores

    def finish(self, sequences: Tensor) -> Tensor:
        """Log-probabilities (rows, new tokens), after generation has ended."""
        self._gather(sequences)
        return torch.stack(self._columns, dim=1)

    def _gather(self, input_ids: Tensor) -> None:
        if self._distribution is not None:
            self._columns.append(self._distribution.gather(1, input_ids[:, -1:]).squeeze(1))


def sample(
    policy: Policy,
    prompts: Sequence[list[int]],
    group_size: int,
    *,
    temperature: float,
    max_new_tokens: int,
    batch_size: int,
    seed: int,
    greedy: bool = False,
) -> list[list[Sample]]:
    """Draw `group_size` responses to each prompt from the full distribution at a temperature.

    Args:
        prompts: token ids.
        max_new_tokens: limit of a response, end token included.
        batch_size: sequences generated together.
        seed: determines every draw; torch's own random state is left as it was.
        greedy: take the most likely token instead of drawing. The log-probabilities are still those
            of the distribution at the temperature.

    Returns:
        Samples as [prompts][group_size].
    """
    rows = [ids for ids in prompts for _ in range(group_size)]
    samples: list[Sample] = []
    for number, batch in enumerate(_batched(rows, batch_size)):
        samples += _generate(
            policy, batch, temperature, max_new_tokens, derive_seed(seed, "batch", number), greedy
        )
    return [samples[i : i + group_size] for i in range(0, len(samples), group_size)]


@torch.no_grad()
def _generate(
    policy: Policy,
    rows: Sequence[list[int]],
    temperature: float,
    max_new_tokens: int,
    seed: int,
    greedy: bool,
) -> list[Sample]:
    width = max(len(ids) for ids in rows)
    input_ids = torch.full((len(rows), width), policy.pad_id, dtype=torch.long)
    mask = torch.zeros_like(input_ids)
    for row, ids in enumerate(rows):
        input_ids[row, width - len(ids) :] = torch.tensor(ids)
        mask[row, width - len(ids) :] = 1
    recorder = _LogProbRecorder()
    devices = [policy.device] if policy.device.type != "cpu" else []
    with torch.random.fork_rng(devices, device_type=policy.device.type if devices else "cuda"):
        torch.manual_seed(seed)
        sequences: Tensor = policy.model.generate(  # type: ignore[operator]
            input_ids=input_ids.to(policy.device),
            attention_mask=mask.to(policy.device),
            max_new_tokens=max_new_tokens,
            **({"do_sample": False} if greedy else _FULL_DISTRIBUTION),
            eos_token_id=list(policy.stop_ids),
            pad_token_id=policy.pad_id,
            logits_processor=LogitsProcessorList([TemperatureLogitsWarper(temperature), recorder]),
        )
    logprobs = recorder.finish(sequences).tolist()
    new_ids = sequences[:, width:].tolist()
    return [
        _until_stop(ids, lps, policy.stop_ids) for ids, lps in zip(new_ids, logprobs, strict=True)
    ]


def _until_stop(ids: list[int], logprobs: list[float], stop_ids: Sequence[int]) -> Sample:
    end = next((i for i, token in enumerate(ids) if token in stop_ids), None)
    length = len(ids) if end is None else end + 1
    return Sample(ids[:length], logprobs[:length], finished=end is not None)


def _batched(rows: Iterable[list[int]], size: int) -> Iterable[list[list[int]]]:
    iterator = iter(rows)
    while batch := list(itertools.islice(iterator, size)):
        yield batch

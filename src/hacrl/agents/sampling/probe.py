"""Whether an engine computes what its learner computes."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from statistics import fmean

import torch

from hacrl.agents.policy.logprobs import pad, response_logprobs
from hacrl.agents.policy.policy import Policy
from hacrl.agents.sampling.engines.base import Engine, Request
from hacrl.errors import NotFinite, UserError

__all__ = ["EXACT", "TOLERANCE", "Probe"]

EXACT = 1e-4
"""Probe gap in nats per token up to which an engine's log-probabilities count as the learner's own:
a third of the default own clip, which a response's mean stays well below."""

TOLERANCE = {True: 1e-3, False: 0.1}
"""Largest probe gap, by whether learner and engine both compute in single precision."""

_TOKENS = 16
"""Drawn for the probe, besides its prompt."""


class Probe:
    """Compares the log-probabilities of a prompt's tokens and of a response to it.

    Args:
        policy: what the engine's weights are a copy of.
        temperature: of training, at which the response is drawn.
        autocast: whether the learner computes in bfloat16 autocast.
        tolerance: largest gap in nats per token.
        seed: of the response.
    """

    def __init__(
        self, policy: Policy, *, temperature: float, autocast: bool, tolerance: float, seed: int
    ) -> None:
        self._policy = policy
        self._temperature = temperature
        self._autocast = autocast
        self._tolerance = tolerance
        self._seed = seed

    def gap(self, engine: Engine, prompt: list[int], room: float) -> float:
        """Mean absolute difference between engine and learner in nats per token.

        Args:
            prompt: token ids.
            room: tokens that a response to it can have.

        Raises:
            UserError: it is beyond the tolerance.
            EngineError: the engine has failed.
        """
        request = Request(
            prompt_ids=prompt,
            max_new_tokens=int(min(_TOKENS, room)),
            temperature=self._temperature,
            seed=self._seed,
            stop_ids=self._policy.stop_ids,
        )
        (drawn,) = engine.draw([request])
        (scored,) = engine.draw([replace(request, max_new_tokens=1, score_prompt=True)])
        theirs = [*scored.prompt_logprobs, *drawn.logprobs]
        ours = [
            *self.learner_logprobs(prompt[:1], prompt[1:], 1.0),
            *self.learner_logprobs(prompt, drawn.token_ids, self._temperature),
        ]
        gap = fmean(abs(a - b) for a, b in zip(ours, theirs, strict=True))
        if not all(map(math.isfinite, ours)):
            raise NotFinite(
                f"agent {self._policy.name}: its logits are not finite on the probe's prompt, so "
                "nothing can be sampled from it"
            )
        if not gap <= self._tolerance:  # nor is it if it is not a number
            raise UserError(
                f"agent {self._policy.name}: its {engine.name} engine and its learner disagree "
                f"about a prompt and a response to it: mean log-probability {fmean(theirs):.6g} "
                f"and {fmean(ours):.6g} nats a token, {gap:.3g} apart where {self._tolerance:g} is "
                f"allowed; use agents.{self._policy.name}.sampler: hf, or dtype: float32 for both"
            )
        return gap

    @torch.no_grad()
    def learner_logprobs(
        self, prompt: list[int], response: list[int], temperature: float
    ) -> list[float]:
        """The learner's log-probabilities of a response's tokens in nats."""
        if not response:
            return []
        policy = self._policy
        with self._arithmetic():
            row = response_logprobs(
                policy, pad([prompt], [response], policy.pad_id, policy.device), temperature
            )
        return row[0].tolist()

    def _arithmetic(self) -> AbstractContextManager[object]:
        if not self._autocast:
            return nullcontext()
        return torch.autocast(self._policy.device.type, torch.bfloat16)

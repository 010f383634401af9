"""Sampling with an inference engine that is kept in step with the learner, and checked to be."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from hacrl.agents.policy.plain_weights import plain_config, plain_weights
from hacrl.agents.policy.policy import Policy
from hacrl.agents.sampling.base import Sample, check_finite
from hacrl.agents.sampling.engines.base import Engine, EngineError, Request
from hacrl.agents.sampling.probe import EXACT, Probe
from hacrl.errors import UserError
from hacrl.records import Decoding
from hacrl.seeding import derive_seed

__all__ = ["ExternalSampler"]


class ExternalSampler:
    """Draws from a policy with an engine of its own. See `Sampler`.

    The engine gets the policy's weights before it draws, if they have changed since or if it has
    slept. Each time it must show in a probe that its log-probabilities are the learner's: those of
    a prompt's tokens and of a response to it, at the temperature of training.

    Args:
        policy: whose weights it draws from, the adapter merged in.
        engine: not yet started; closed with the sampler, and as soon as it fails.
        probe: of the same policy.
        dtype: of the engine's weights.
        single: whether learner and engine both compute in single precision.
        positions: tokens of prompt and response that the engine can address, None if as many as
            the policy.

    Raises:
        UserError: the engine cannot be started, or cannot serve the model.
    """

    def __init__(
        self,
        policy: Policy,
        engine: Engine,
        probe: Probe,
        *,
        dtype: torch.dtype,
        single: bool,
        positions: int | None,
    ) -> None:
        self._policy = policy
        self._engine = engine
        self._probe = probe
        self._dtype = dtype
        self._single = single
        self._positions = positions
        self._current = True
        self._probe_prompt: list[int] | None = None
        self._probe_gap: float | None = None
        self._sync_seconds: float | None = None
        policy.activate()
        with self._failing():
            engine.start(plain_config(policy), self._weights())
            self._asleep = engine.sleep()

    @property
    def positions(self) -> int | None:
        limits = (self._policy.max_tokens, self._positions)
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def exact(self) -> bool:
        return self._single and self._probe_gap is not None and self._probe_gap <= EXACT

    def sample(
        self, prompts: Sequence[list[int]], group_size: int, decoding: Decoding, seed: int
    ) -> list[list[Sample]]:
        requests = [
            Request(
                prompt_ids=ids,
                max_new_tokens=decoding.max_new_tokens,
                temperature=0.0 if decoding.greedy else decoding.temperature,
                seed=derive_seed(seed, position, number),
                stop_ids=self._policy.stop_ids,
            )
            for position, ids in enumerate(prompts)
            for number in range(group_size)
        ]
        with self._failing():
            self._catch_up(prompts[0])
            drawn = self._engine.draw(requests)
            self._asleep = self._engine.sleep()
        samples = [
            Sample(response.token_ids, response.logprobs, response.finished) for response in drawn
        ]
        check_finite(self._policy.name, samples)
        return [samples[i : i + group_size] for i in range(0, len(samples), group_size)]

    def weights_changed(self) -> None:
        self._current = False

    def metrics(self) -> dict[str, float | None]:
        return {"probe_gap": self._probe_gap, "sync_seconds": self._sync_seconds}

    def close(self) -> None:
        self._engine.close()

    def _catch_up(self, prompt: list[int]) -> None:
        """Bring the engine the policy's weights if it has others, and see that it uses them."""
        if self._current and not self._asleep and self._probe_gap is not None:
            return
        if self._asleep or not self._current:
            started = time.perf_counter()
            self._engine.load(self._weights())
            self._sync_seconds = time.perf_counter() - started
            self._current, self._asleep = True, False
        if self._probe_prompt is None:
            self._probe_prompt = prompt
        room = (self.positions or math.inf) - len(self._probe_prompt)
        self._probe_gap = self._probe.gap(self._engine, self._probe_prompt, room)

    def _weights(self) -> Iterator[tuple[str, Tensor]]:
        """Those that had to be made are let go of as soon as the engine has read them all."""
        yield from plain_weights(self._policy, self._dtype).items()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Say whose engine it is that fails, and end it."""
        try:
            yield
        except EngineError as error:
            self.close()
            raise UserError(
                f"agent {self._policy.name}: {self._engine.name} engine: {error}"
            ) from error

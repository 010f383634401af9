"""What draws an agent's responses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from hacrl.config.bounds import Gibibytes, Processes, Seconds, Tokens
from hacrl.config.strict import Strict

__all__ = ["EngineSampling", "HuggingFaceSampling", "SamplerSpec", "VllmSampling"]


class HuggingFaceSampling(Strict):
    """The learner's own model draws them. No setup, exact, and slow for real models."""

    type: Literal["hf"] = "hf"
    gather: bool = False
    """With `ranks`: every rank holds all weights while it samples, which is much faster where they
    fit. Otherwise it holds those of a layer while that computes. Changes nothing learned."""


class EngineSampling(Strict):
    """An inference engine in its own process, which gets the learner's weights after every step.

    It draws other responses from the same distribution; apart from that it changes nothing learned.
    """

    type: str
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Of the engine's weights and cache. `auto` takes what the learner computes in: bfloat16 with
    `update.autocast: bfloat16`, else the agent's `dtype`."""
    max_model_len: Tokens | None = None
    """Longest prompt and response together; None takes what the model can address. Prompts that
    leave too little room are treated as `prompts.too_long` says."""
    sleep: bool = True
    """Free the engine's GPU memory whenever it is not sampling. A CPU engine always keeps its."""
    seconds: Seconds = 600.0
    """Longest silence of the engine, its start included, before the run stops. While vLLM generates
    it reports after every token."""
    tolerance: float | None = Field(default=None, gt=0.0, le=1e6)
    """Largest probe gap in nats per token; beyond it the run stops. None: 0.001 where learner and
    engine compute in float32, else 0.1."""


class VllmSampling(EngineSampling):
    """A vLLM engine in a process of its own."""

    type: Literal["vllm"] = "vllm"
    tensor_parallel_size: Processes = 1
    """Devices that one engine is spread over."""
    gpu_memory_utilization: float = Field(default=0.4, ge=0.01, le=1.0)
    """Share of a GPU's memory for weights and cache of the engine."""
    cpu_cache: Gibibytes = 1.0
    """Memory of the engine's cache in GiB where it runs on a CPU."""
    enforce_eager: bool = False
    """Do not compile the model: starts faster, samples slower."""


def _named(value: Any) -> Any:
    """`sampler: vllm` is short for `sampler: {type: vllm}`."""
    return {"type": value} if isinstance(value, str) else value


SamplerSpec = Annotated[
    HuggingFaceSampling | VllmSampling, Field(discriminator="type"), BeforeValidator(_named)
]

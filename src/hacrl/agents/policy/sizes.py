"""How large agents are, found out from their configurations alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from transformers import AutoModelForCausalLM, PretrainedConfig

from hacrl.config.agents import AgentSpec
from hacrl.errors import UserError, first_line

__all__ = ["Memory", "Parameters", "count_parameters", "memory"]

_BYTES_PER_QUANTIZED = 4.127 / 8
"""NF4 with doubly quantized constants: Dettmers et al., QLoRA (2023), section 3."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Numbers of weights.

    Args:
        own: of the model itself, tied ones counted once.
        linear: those of them that quantization would store in 4 bits.
        adapter: of the adapter, None if the model itself is trained.
        tied: name of a layer with an adapter that shares its weight with another, None if there is
            none.
    """

    own: int
    linear: int
    adapter: int | None
    tied: str | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that an agent holds all the time."""

    weights: int
    gradients: int
    adamw: int
    reference: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.adamw + self.reference


def count_parameters(name: str, spec: AgentSpec, config: PretrainedConfig) -> Parameters:
    """Numbers of weights of the model that a configuration describes; it is not loaded.

    Raises:
        UserError: the configuration makes no model, or the adapter does not fit it.
    """
    try:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(
                config, trust_remote_code=spec.trust_remote_code
            )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise UserError(
            f"agent {name}: the configuration of {spec.model} makes no model ({first_line(error)})"
        ) from error
    own = sum(parameter.numel() for parameter in model.parameters())
    head = model.get_output_embeddings()
    linear = sum(
        module.weight.numel()
        for module in model.modules()
        if isinstance(module, nn.Linear) and module is not head
    )
    if spec.lora is None:
        return Parameters(own, linear, None)
    from hacrl.agents.policy.adapters import describe_adapter, inject_adapter, tied_layer

    with torch.device("meta"):
        inject_adapter(name, model, describe_adapter(name, spec), seed=0)
    adapter = sum(parameter.numel() for parameter in model.parameters()) - own
    return Parameters(own, linear, adapter, tied_layer(name, model))


def memory(parameters: Parameters, spec: AgentSpec, *, reference: bool) -> Memory:
    """Memory of an agent's weights and, if it learns, of what training them keeps.

    Gradients and the two moments of AdamW have the dtype of what is trained, which for an adapter
    is single precision. An adapter's reference is the model without it, at no cost.
    """
    size = getattr(torch, spec.dtype).itemsize
    weights = parameters.own * size
    if parameters.adapter is None:
        if not spec.learns:
            return Memory(weights=weights, gradients=0, adamw=0, reference=0)
        return Memory(
            weights=weights, gradients=weights, adamw=2 * weights, reference=weights * reference
        )
    if spec.lora is not None and spec.lora.quantization != "none":
        stored = round(parameters.linear * _BYTES_PER_QUANTIZED)
        weights = (parameters.own - parameters.linear) * size + stored
    added = parameters.adapter * torch.float32.itemsize
    trained = added * spec.learns
    return Memory(weights=weights + added, gradients=trained, adamw=2 * trained, reference=0)

"""A policy's weights as a plain model folder holds them, for programs that know no adapters."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion

from hacrl.agents.policy.policy import Policy

__all__ = ["plain_config", "plain_weights", "write_weights"]

_WEIGHTS = "model.safetensors"


def plain_config(policy: Policy) -> PreTrainedConfig:
    """The model's configuration, without the quantization that training uses."""
    config = copy.deepcopy(policy.model.config)
    config.architectures = [type(policy.model).__name__]  # a GGUF file does not say
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    return config


@torch.no_grad()
def plain_weights(policy: Policy, dtype: torch.dtype) -> dict[str, Tensor]:
    """Weights by the names of a checkpoint, tied ones once.

    The policy's adapter is merged in, W + s·B·A; those of other agents that share the model are
    left out. What is quantized is dequantized. The policy itself stays as it is, and what needs no
    change is not copied.
    """
    model = policy.model
    if getattr(model, "peft_config", None):
        weights = _merged(model, policy.adapter)
    else:
        weights = {key: parameter.detach() for key, parameter in model.named_parameters()}
    persistent = model.state_dict().keys()
    weights |= {key: buffer for key, buffer in model.named_buffers() if key in persistent}
    return {
        key: value.to(dtype) if value.is_floating_point() else value
        for key, value in revert_weight_conversion(model, weights).items()
    }


def write_weights(weights: Iterable[tuple[str, Tensor]], folder: Path) -> Path:
    """Write weights as the one file of safetensors that a model folder needs; return its path."""
    path = folder / _WEIGHTS
    tensors = {key: value.contiguous().cpu() for key, value in weights}
    save_file(tensors, path, metadata={"format": "pt"})
    return path


def _merged(model: PreTrainedModel, adapter: str | None) -> dict[str, Tensor]:
    from peft.tuners.lora import LoraLayer

    layers: dict[str, Any] = {
        path: module for path, module in model.named_modules() if isinstance(module, LoraLayer)
    }
    adapters = {
        id(parameter)
        for layer in layers.values()
        for name in layer.adapter_layer_names
        for parameter in getattr(layer, name).parameters()
    }
    weights = {}
    for key, parameter in model.named_parameters():
        if id(parameter) in adapters:
            continue
        path, _, kind = key.rpartition(".")
        path = path.removesuffix(".base_layer")
        value = _dequantized(parameter)
        layer = layers.get(path)
        if layer is not None and kind == "weight" and adapter in layer.r:
            value = value.float() + layer.get_delta_weight(adapter).float()
        weights[f"{path}.{kind}"] = value
    return weights


def _dequantized(parameter: nn.Parameter) -> Tensor:
    if not hasattr(parameter, "quant_state"):  # bitsandbytes
        return parameter.detach()
    from peft.utils.integrations import dequantize_bnb_weight

    return dequantize_bnb_weight(parameter).detach()

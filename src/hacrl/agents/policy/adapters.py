"""Low-rank adapters, by PEFT: made, started from, saved and read again.

An adapter is injected into the model itself, under the agent's name, so that several agents can
share the weights of one model. Whoever uses the model says first whose adapter acts
(`Policy.activate`). PEFT takes a second to import, so this module is imported where it is used.
"""

from __future__ import annotations

import copy
import os
import warnings
from pathlib import Path
from typing import Any

import torch
from peft import (
    LoraConfig,
    PeftConfig,
    get_peft_model_state_dict,
    load_peft_weights,
    set_peft_model_state_dict,
)
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from hacrl.config.agents import AgentSpec
from hacrl.errors import UserError, first_line
from hacrl.paths import resolve
from hacrl.seeding import derive_seed

__all__ = [
    "ADAPTER_CONFIG",
    "add_adapter",
    "describe_adapter",
    "inject_adapter",
    "load_adapter",
    "save_adapter",
    "tied_layer",
    "try_adapter",
]

ADAPTER_CONFIG = "adapter_config.json"
"""By this file a folder is known to be an adapter."""

_WEIGHTS = "adapter_model.safetensors"
_PREFIX = "base_model.model."
"""Before every key of a saved adapter, by PEFT's convention."""


def describe_adapter(name: str, spec: AgentSpec) -> LoraConfig:
    """The adapter that the recipe wants for an agent, or the one that it starts from.

    Raises:
        UserError: that cannot be read, or is no LoRA adapter.
    """
    lora = spec.lora
    assert lora is not None
    if lora.adapter is None:
        return LoraConfig(
            r=lora.rank,
            lora_alpha=lora.alpha,  # type: ignore[arg-type]  # it is only ever divided
            target_modules=lora.target_modules,
            task_type="CAUSAL_LM",
            revision=spec.revision,
        )
    try:
        peft_config: Any = PeftConfig.from_pretrained(_location(name, lora.adapter))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"agent {name}: lora.adapter {lora.adapter} cannot be read; name the folder or Hub id "
            f"of a PEFT adapter ({first_line(error)})"
        ) from error
    if not isinstance(peft_config, LoraConfig):
        raise UserError(
            f"agent {name}: lora.adapter {lora.adapter} is of type {peft_config.peft_type}, "
            "not LoRA"
        )
    peft_config.inference_mode = False
    peft_config.lora_dropout = 0.0  # no dropout in a policy's forward pass
    return peft_config


def add_adapter(name: str, model: PreTrainedModel, spec: AgentSpec, seed: int) -> None:
    """Give a model an adapter under an agent's name; its own weights are trained no more.

    Args:
        model: may hold the adapters of other agents already.
        seed: decides the start of the adapter, together with the name.

    Raises:
        UserError: the adapter does not fit the model.
    """
    inject_adapter(name, model, describe_adapter(name, spec), seed)
    for key, parameter in model.named_parameters():
        if f".{name}." in key:  # half precision would round small steps away
            parameter.data = parameter.data.float()
    assert spec.lora is not None
    if spec.lora.adapter is not None:
        weights = load_peft_weights(_location(name, spec.lora.adapter), device="cpu")
        _put(name, model, weights, spec.lora.adapter)


def inject_adapter(name: str, model: PreTrainedModel, config: LoraConfig, seed: int) -> None:
    """Put an adapter as it begins into a model. See `add_adapter`."""
    _check_layers(name, model, config)
    try:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Already found a `peft_config`")  # wanted
            # `hacrl check` says it, see `tied_layer`.
            warnings.filterwarnings("ignore", message="Model has `tie_word_embeddings=True`")
            torch.manual_seed(derive_seed(seed, "adapter", name))
            model.add_adapter(config, name)
    except (ValueError, TypeError) as error:
        raise UserError(
            f"agent {name}: lora does not fit its model ({first_line(error)})"
        ) from error


def save_adapter(name: str, model: PreTrainedModel, folder: Path) -> None:
    """Write an agent's adapter as PEFT does. Changes nothing about which adapter acts."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = _state(name, model)
    save_file(
        {_PREFIX + key: value.contiguous().cpu() for key, value in weights.items()},
        folder / _WEIGHTS,
        metadata={"format": "pt"},
    )
    config: Any = copy.copy(model.peft_config[name])
    for key, value in vars(config).items():
        if isinstance(value, set):  # it has another order every time
            setattr(config, key, sorted(value))
    config.save_pretrained(str(folder))


def try_adapter(name: str, model: PreTrainedModel, folder: Path) -> None:
    """See that PEFT can load what `save_adapter` wrote, onto a model without memory for weights.

    Raises:
        UserError: it cannot.
    """
    problem = ""
    try:
        config: Any = PeftConfig.from_pretrained(str(folder))
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is the same as in the model that was trained
            bare = AutoModelForCausalLM.from_config(
                model.config,
                trust_remote_code=not type(model).__module__.startswith("transformers."),
            )
            bare.add_adapter(config, name)
        expected = _state(name, bare)
        tensors = load_file(folder / _WEIGHTS)
        shapes = {key.removeprefix(_PREFIX): value.shape for key, value in tensors.items()}
        if shapes != {key: value.shape for key, value in expected.items()}:
            problem = "its weights are not those that its configuration describes"
    except (OSError, SafetensorError, ValueError, TypeError, KeyError, RuntimeError) as error:
        problem = first_line(error)
    if problem:
        raise UserError(
            f"agent {name}: the adapter in {folder} cannot be loaded again ({problem}); train it "
            f"with other settings of agents.{name}.lora"
        )


def tied_layer(name: str, model: PreTrainedModel) -> str | None:
    """A layer with an adapter whose weight is also another layer's, so that merging changes both.

    Args:
        name: of the adapter.
    """
    if not model.config.get_text_config().tie_word_embeddings:
        return None
    ends = (model.get_output_embeddings(), model.get_input_embeddings())
    kinds = ("lora_A", "lora_embedding_A", "modules_to_save")
    for key, module in model.named_modules():
        if module in ends and any(name in getattr(module, kind, ()) for kind in kinds):
            return str(key)
    return None


def load_adapter(name: str, model: PreTrainedModel, folder: Path) -> None:
    """Set an agent's adapter to what `save_adapter` wrote.

    Raises:
        UserError: it cannot be read, or is of another shape.
    """
    try:
        weights = load_file(folder / _WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise UserError(f"agent {name}: {folder / _WEIGHTS} cannot be read ({error})") from error
    _put(name, model, weights, str(folder))


def _state(name: str, model: PreTrainedModel) -> dict[str, Tensor]:
    """The weights of an adapter, and none of the model's own."""
    state: dict[str, Tensor] = get_peft_model_state_dict(
        model, adapter_name=name, save_embedding_layers=False
    )
    return state


def _put(name: str, model: PreTrainedModel, weights: dict[str, Tensor], origin: str) -> None:
    plain = {
        key.removeprefix(_PREFIX): value
        for key, value in weights.items()
        if not key.endswith(".base_layer.weight")  # of the model: PEFT saves embeddings with them
    }
    expected = _state(name, model)
    if plain.keys() != expected.keys():
        odd = min(plain.keys() ^ expected.keys())
        raise UserError(f"agent {name}: adapter {origin} does not fit its model at {odd}")
    try:
        set_peft_model_state_dict(model, plain, adapter_name=name)
    except RuntimeError as error:
        raise UserError(
            f"agent {name}: adapter {origin} does not fit its model ({first_line(error)})"
        ) from error


def _check_layers(name: str, model: PreTrainedModel, config: LoraConfig) -> None:
    """PEFT is content if one of the layers exists; a misspelt one would go unnoticed."""
    wanted = config.target_modules
    if isinstance(wanted, str) or wanted is None:
        return
    layers = [key for key, _ in model.named_modules()]
    for target in sorted(wanted):
        if not any(layer == target or layer.endswith("." + target) for layer in layers):
            raise UserError(
                f"agent {name}: lora.target_modules names {target}, which its model does not have; "
                "use all-linear, or names such as q_proj"
            )


def _location(name: str, adapter: str) -> str:
    path = resolve(adapter)
    if os.path.isdir(path):
        return str(path)
    if adapter.startswith((".", "/", "~")) or adapter.count("/") > 1:
        raise UserError(f"agent {name}: lora.adapter {adapter} does not exist")
    return adapter

"""Loading one agent's model and tokenizer from Hugging Face formats."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import (
    AutoModelForCausalLM,
    BitsAndBytesConfig,
    GenerationConfig,
    GgufConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from hacrl.agents.policy.attention import group_queries
from hacrl.agents.policy.end_tokens import end_ids
from hacrl.agents.policy.policy import Policy
from hacrl.agents.policy.source import load_config, location
from hacrl.agents.policy.tokenizer import load_tokenizer
from hacrl.agents.policy.vocabulary import check_sizes
from hacrl.config.agents import AgentSpec
from hacrl.errors import UserError, first_line

__all__ = [
    "SharedModels",
    "find_device",
    "load_model",
    "load_policy",
    "sharing_key",
]


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A model as it came, and its generation config, which the model itself carries no more."""

    model: PreTrainedModel
    generation_config: GenerationConfig


class SharedModels:
    """Models whose own weights are not trained, each held in memory once. See `load_policy`."""

    def __init__(self) -> None:
        self._models: dict[str, _Loaded] = {}

    def get(self, name: str, spec: AgentSpec) -> _Loaded:
        """The model of an agent with an adapter, loaded if no agent before had the same."""
        key = sharing_key(spec)
        if key not in self._models:
            self._models[key] = _load_model(name, spec)
        return self._models[key]


def sharing_key(spec: AgentSpec) -> str:
    """Equal for agents with adapters that can share one model in memory."""
    same = ("model", "gguf", "revision", "trust_remote_code", "dtype", "device")
    return repr([*(getattr(spec, key) for key in same), spec.lora and spec.lora.quantization])


def load_policy(
    name: str,
    spec: AgentSpec,
    tokenizer: PreTrainedTokenizerBase | None = None,
    *,
    seed: int = 0,
    shared: SharedModels | None = None,
    clock: datetime | None = None,
) -> Policy:
    """Load model and tokenizer.

    Args:
        tokenizer: of `load_tokenizer`, if it has been loaded already.
        seed: decides the start of a new adapter.
        shared: where agents with adapters find the model that others have loaded before them.
        clock: what the chat template takes for now; None is the present.

    Raises:
        UserError: anything about the model that the recipe's author can correct.
    """
    if tokenizer is None:
        load_config(name, spec)  # what is no language model may have no tokenizer either
        tokenizer = load_tokenizer(name, spec)
    loaded = (shared or SharedModels()).get(name, spec) if spec.lora else _load_model(name, spec)
    model = loaded.model
    if spec.lora is not None:
        from hacrl.agents.policy.adapters import add_adapter

        add_adapter(name, model, spec, seed)
        model.eval()
    table: Any = model.get_input_embeddings()
    check_sizes(name, tokenizer, table.weight.shape[0])
    stop_ids = end_ids(name, spec, tokenizer, loaded.generation_config)
    model.generation_config = GenerationConfig(eos_token_id=list(stop_ids))
    policy = Policy(
        name,
        model,
        tokenizer,
        stop_ids,
        dict(spec.template_args),
        loaded.generation_config,
        adapter=name if spec.lora else None,
        clock=clock or datetime.now(),
        split_special_tokens=spec.split_special_tokens,
    )
    _check_logits(policy)
    return policy


def load_model(name: str, spec: AgentSpec) -> PreTrainedModel:
    """The model alone, as it came.

    Raises:
        UserError: see `load_policy`.
    """
    return _load_model(name, spec).model


def _load_model(name: str, spec: AgentSpec) -> _Loaded:
    dtype = getattr(torch, spec.dtype)
    device = find_device(name, spec.device)
    quantized = _quantization(spec, dtype)
    options: dict[str, Any] = {}
    if spec.gguf:
        options = {"gguf_file": spec.gguf, "quantization_config": GgufConfig(dequantize=True)}
    elif quantized is not None:  # moved by the library, which cannot be done later
        options = {"quantization_config": quantized, "device_map": {"": device}}
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            location(name, spec),
            config=load_config(name, spec),
            output_loading_info=True,
            revision=spec.revision,
            trust_remote_code=spec.trust_remote_code,
            dtype=dtype,
            **options,
        )
    except ImportError as error:
        raise UserError(
            f"agent {name}: {first_line(error)}; lora.quantization needs bitsandbytes, "
            'pip install "hacrl[qlora]"'
        ) from error
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise UserError(
            f"agent {name}: weights of {spec.model} cannot be loaded ({first_line(error)})"
        ) from error
    model, loading = loaded
    if missing := sorted(loading["missing_keys"]):  # they would be random
        raise UserError(
            f"agent {name}: weights of {spec.model} are incomplete, {len(missing)} tensors such "
            f"as {missing[0]} are missing"
        )
    if quantized is None:
        model.to(device)
    group_queries(model)
    for module in model.modules():
        # bitsandbytes would repack 4-bit weights for inference on some CPUs, and then no gradient
        # passes them any more.
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False
    return _Loaded(model.eval(), copy.deepcopy(model.generation_config))


def _quantization(spec: AgentSpec, dtype: torch.dtype) -> BitsAndBytesConfig | None:
    """How the model's own weights are quantized, None if they are not."""
    if spec.lora is None or spec.lora.quantization == "none":
        return None
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
    )


def find_device(name: str, wanted: str) -> torch.device:
    """The device that an agent's `device` means here.

    Raises:
        UserError: it is not available.
    """
    if wanted == "auto":
        accelerator = torch.accelerator.current_accelerator(check_available=True)
        return accelerator or torch.device("cpu")
    try:
        device = torch.device(wanted)
        torch.empty(1, device=device).item()  # not on the device that holds no numbers
    except (RuntimeError, AssertionError) as error:
        raise UserError(
            f"agent {name}: device {wanted} is not available here ({first_line(error)})"
        ) from error
    return device


@torch.no_grad()
def _check_logits(policy: Policy) -> None:
    """Refuse a model whose logits are not what `Policy.logits` makes of the hidden states."""
    ids = torch.tensor(
        [[i % policy.model.config.get_text_config().vocab_size for i in range(1, 7)]]
    )
    ids = ids.to(policy.device)
    mask = torch.ones_like(ids)
    ours = policy.logits(policy.hidden_states(ids, mask))
    theirs = policy.model(input_ids=ids, attention_mask=mask, use_cache=False).logits.float()
    if bool(ours.logsumexp(-1).isfinite().logical_not().any()):
        raise UserError(
            f"agent {policy.name}: its model's logits are not finite from the start; its weights "
            "are damaged, or are beyond what its dtype can hold"
        )
    if not torch.allclose(ours, theirs, rtol=1e-2, atol=1e-2):
        raise UserError(
            f"agent {policy.name}: {type(policy.model).__name__} changes its logits after the "
            "output layer in a way that is not supported; choose another architecture"
        )

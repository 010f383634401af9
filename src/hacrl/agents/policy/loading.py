"""Loading one agent's model and tokenizer from Hugging Face formats."""

from __future__ import annotations

import copy
import os
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    GenerationConfig,
    GgufConfig,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

from hacrl.agents.policy.attention import group_queries
from hacrl.agents.policy.begin import prepend_begin
from hacrl.agents.policy.norms import merge_norms
from hacrl.agents.policy.policy import Policy
from hacrl.agents.policy.templates import chat_template, parse_template
from hacrl.agents.policy.vocabulary import check_sizes
from hacrl.config.agents import AgentSpec, NamedTemplate
from hacrl.errors import UserError, first_line
from hacrl.paths import BUNDLED, resolve
from hacrl.tasks.rows import read_text

__all__ = [
    "ModelUnavailable",
    "SharedModels",
    "find_device",
    "load_config",
    "load_model",
    "load_policy",
    "load_tokenizer",
    "sharing_key",
]

_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""Jinja does not join two of them."""


class ModelUnavailable(UserError):  # noqa: N818 - may be no error at all
    """A hub id that could not be fetched. It may well exist, and be there on another machine."""


def load_config(name: str, spec: AgentSpec) -> PretrainedConfig:
    """The model's configuration, without its weights.

    Raises:
        ModelUnavailable: a hub id that cannot be fetched.
        UserError: not found, or not a causal language model.
    """
    location = _location(name, spec)
    try:
        config: PretrainedConfig = AutoConfig.from_pretrained(
            location,
            revision=spec.revision,
            trust_remote_code=spec.trust_remote_code,
            **({"gguf_file": spec.gguf} if spec.gguf else {}),
        )
    except (OSError, ValueError, KeyError) as error:
        raise _cannot_load(name, spec, "model", error) from error
    remote = getattr(config, "auto_map", None) or {}
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING and "AutoModelForCausalLM" not in remote:
        raise UserError(
            f"agent {name}: model {spec.model} is a {config.model_type}, not a causal language "
            "model; choose one that AutoModelForCausalLM loads"
        )
    for key, value in config.to_dict().items():  # no dropout in a policy's forward pass
        if ("dropout" in key or key.endswith("pdrop")) and isinstance(value, float):
            setattr(config, key, 0.0)
    return config


def load_tokenizer(name: str, spec: AgentSpec) -> PreTrainedTokenizerBase:
    """The agent's tokenizer, with the recipe's chat template if there is one.

    Raises:
        ModelUnavailable: a hub id that cannot be fetched.
        UserError: not found, an unknown stop token, a missing or broken template, several of them
            and no choice, or a template argument that the template does not know.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            _location(name, spec),
            revision=spec.revision,
            trust_remote_code=spec.trust_remote_code,
            **({"gguf_file": spec.gguf} if spec.gguf else {}),
        )
    # The library in Rust raises a bare Exception, for example for a vocabulary that is no text.
    except Exception as error:
        raise _cannot_load(name, spec, "tokenizer of", error) from error
    _choose_template(name, spec, tokenizer)
    _check_template(name, spec, chat_template(tokenizer))
    if chat_template(tokenizer) is None:
        options = {"revision": spec.revision, "trust_remote_code": spec.trust_remote_code}
        prepend_begin(tokenizer, _location(name, spec), **options)
    known = tokenizer.get_vocab()
    for token in spec.stop:
        if token not in known:
            raise UserError(f"agent {name}: stop token {token!r} is not in its vocabulary")
    return tokenizer


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
    stop_ids = _stop_ids(name, spec, tokenizer, loaded.generation_config)
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
            _location(name, spec),
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
    merge_norms(model)
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


def _location(name: str, spec: AgentSpec) -> str:
    path = resolve(spec.model)
    if os.path.isdir(path):
        if spec.gguf and not os.path.isfile(path / spec.gguf):
            raise UserError(f"agent {name}: gguf file {spec.gguf} is not in {spec.model}")
        return str(path)
    if spec.model.startswith((".", "/", "~", BUNDLED)) or spec.model.count("/") > 1:
        raise UserError(f"agent {name}: model folder {spec.model} does not exist")
    return spec.model


def _cannot_load(name: str, spec: AgentSpec, part: str, error: Exception) -> UserError:
    """What to say when the library fails. Only a hub id that is not fetched is unavailable."""
    if isinstance(error, OSError) and not os.path.isdir(resolve(spec.model)):
        return ModelUnavailable(
            f"agent {name}: {part} {spec.model} is no local folder and cannot be fetched from the "
            f"hub ({first_line(error)})"
        )
    return UserError(
        f"agent {name}: {part} {spec.model} cannot be loaded ({first_line(error)}); "
        "name a Hugging Face hub id or a folder with a config.json"
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


def _stop_ids(
    name: str, spec: AgentSpec, tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig
) -> tuple[int, ...]:
    """The tokenizer's end token first, then those of the generation config, then the recipe's."""
    declared = generation.eos_token_id
    ids = [tokenizer.eos_token_id, *(declared if isinstance(declared, list) else [declared])]
    known = tokenizer.get_vocab()
    ids += [known[token] for token in spec.stop]
    unique = tuple(dict.fromkeys(int(i) for i in ids if i is not None))
    if not unique:
        raise UserError(
            f"agent {name}: {spec.model} declares no end token; name one with agents.{name}.stop"
        )
    return unique


def _choose_template(name: str, spec: AgentSpec, tokenizer: PreTrainedTokenizerBase) -> None:
    """Make the recipe's chat template the tokenizer's, which is saved with it."""
    wanted, named = spec.chat_template, tokenizer.chat_template
    key = f"agents.{name}.chat_template"
    if isinstance(wanted, str):
        tokenizer.chat_template = _read_template(name, wanted)
    elif isinstance(wanted, NamedTemplate):
        known = named if isinstance(named, dict) else {"default": named} if named else {}
        if wanted.name not in known:
            raise UserError(
                f"{key}.name: {spec.model} has no chat template called {wanted.name}; it has "
                f"{', '.join(sorted(known)) or 'none'}"
            )
        tokenizer.chat_template = {**known, "default": known[wanted.name]}
    elif isinstance(named, dict) and named and "default" not in named:
        raise UserError(
            f"agent {name}: {spec.model} has the chat templates {', '.join(sorted(named))} and no "
            f"default; choose with {key}={{name: {min(named)}}}"
        )


def _read_template(name: str, place: str) -> str:
    path = resolve(place)
    if not os.path.isfile(path):  # no error for a name that no file can have
        raise UserError(f"agent {name}: chat_template {place} is not a file")
    try:
        text = read_text(path)
    except UserError as error:
        raise UserError(f"agent {name}: chat_template {error}") from error
    if half := _HALF_CHARACTER.search(text):
        raise UserError(
            f"agent {name}: chat_template {place}: {half[0]} is half of a character, which no "
            "tokenizer takes; write the character itself, as UTF-8"
        )
    return text


def _check_template(name: str, spec: AgentSpec, template: str | None) -> None:
    if template is None:
        if spec.template_args:
            raise UserError(f"agent {name}: template_args given, but it has no chat template")
        return
    known = parse_template(name, template)
    for key in spec.template_args:
        if key not in known:
            raise UserError(
                f"agent {name}: its chat template has no argument {key}; it knows "
                f"{', '.join(sorted(known)) or 'none'}"
            )


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

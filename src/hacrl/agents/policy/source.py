"""Where a model comes from, a folder or the Hub, and its configuration."""

from __future__ import annotations

import os

from transformers import AutoConfig, PretrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

from hacrl.config.agents import AgentSpec
from hacrl.errors import UserError, first_line
from hacrl.paths import BUNDLED, resolve

__all__ = ["ModelUnavailable", "cannot_load", "load_config", "location"]


class ModelUnavailable(UserError):  # noqa: N818 - may be no error at all
    """A hub id that could not be fetched. It may well exist, and be there on another machine."""


def load_config(name: str, spec: AgentSpec) -> PretrainedConfig:
    """The model's configuration, without its weights.

    Raises:
        ModelUnavailable: a hub id that cannot be fetched.
        UserError: not found, or not a causal language model.
    """
    try:
        config: PretrainedConfig = AutoConfig.from_pretrained(
            location(name, spec),
            revision=spec.revision,
            trust_remote_code=spec.trust_remote_code,
            **({"gguf_file": spec.gguf} if spec.gguf else {}),
        )
    except (OSError, ValueError, KeyError) as error:
        raise cannot_load(name, spec, "model", error) from error
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


def location(name: str, spec: AgentSpec) -> str:
    """What transformers calls the model: the path of its folder, or its Hub id.

    Raises:
        UserError: a folder that does not exist, or has no such GGUF file.
    """
    path = resolve(spec.model)
    if os.path.isdir(path):
        if spec.gguf and not os.path.isfile(path / spec.gguf):
            raise UserError(f"agent {name}: gguf file {spec.gguf} is not in {spec.model}")
        return str(path)
    if spec.model.startswith((".", "/", "~", BUNDLED)) or spec.model.count("/") > 1:
        raise UserError(f"agent {name}: model folder {spec.model} does not exist")
    return spec.model


def cannot_load(name: str, spec: AgentSpec, part: str, error: Exception) -> UserError:
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

"""A step of one agent on fake tensors: its memory, phase by phase, without any of it.

The project's own passes run on the model that a configuration describes, with shapes as large as
the recipe allows. Nothing is computed; what is counted are the bytes of tensors that would be alive
at once. Not counted are the interpreter, the libraries, and what an allocator cannot reuse.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import nn
from torch.distributed.tensor import DTensor
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from hacrl.agents.agent import frozen
from hacrl.agents.learning.algorithm import recipe_algorithm
from hacrl.agents.learning.learner import Learner
from hacrl.agents.learning.loss import tokens_at_once
from hacrl.agents.policy.attention import group_queries
from hacrl.agents.policy.plain_weights import plain_weights
from hacrl.agents.policy.policy import Policy
from hacrl.agents.policy.sharding import Share, shard, whole_on_host, whole_state
from hacrl.config.agents import AgentSpec
from hacrl.config.schema import Recipe
from hacrl.planning.drawing import rehearse_drawing
from hacrl.planning.fakes import fake_tensors
from hacrl.planning.lessons import largest_lessons, smallest_lessons

__all__ = ["PHASES", "Need", "rehearse"]

PHASES = ("load", "sample", "sync", "recompute", "learn", "checkpoint")

_CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes of tensors of one rank of an agent.

    Args:
        peaks: by phase, the most that is alive at once; without phases that it does not have.
        resident: what is alive between phases, once the optimizer has made its state.
        weights: of the model, adapter included, as they are spread over the ranks.
        host: the most that is in host memory, where that is not the device itself.
    """

    peaks: Mapping[str, int]
    resident: int
    weights: int
    host: int


def rehearse(
    name: str, recipe: Recipe, config: PretrainedConfig, prompt_tokens: int, device_type: str
) -> Need:
    """Go through one step of an agent.

    Args:
        name: of the agent in the recipe.
        config: of its model, as `load_config` gives it.
        prompt_tokens: of the longest prompt.
        device_type: `cpu` or `cuda`. The tensors are fake ones of a CPU in either case, since
            autocast and FSDP want a real GPU for those of a GPU; what differs is chosen by this.

    Returns:
        What its first rank needs. No rank needs more.
    """
    spec = recipe.models[name]
    on_cpu = device_type == "cpu"
    model = _bare_model(name, spec, config)
    with fake_tensors(spec.ranks) as (live, share):
        _put(model, _CPU)
        if on_cpu:
            group_queries(model)
        policy = _policy(name, spec, model, share)
        reference = frozen(policy) if spec.learns and recipe.update.kl > 0 else None
        if share.size > 1:
            for loaded in (policy, *([reference] if reference else [])):
                shard(loaded.model, share.size, _CPU)
        # Several ranks load into host memory, from which their parts go to the device.
        whole = live.peak
        peaks = {"load": whole if on_cpu or share.size == 1 else live.now}
        weights = sum(_here(p) for p in policy.model.parameters())
        learner = _learner(policy, reference, recipe, device_type) if spec.learns else None
        if learner is not None:
            learner.learn(smallest_lessons(policy))  # makes the optimizer's state
        if spec.sampler.type == "hf":
            live.restart()
            rehearse_drawing(
                policy,
                prompt_tokens=prompt_tokens,
                new_tokens=recipe.sampling.max_new_tokens,
                rows=min(recipe.sampling.batch_size, recipe.prompts_per_step * recipe.group_size),
                group_size=recipe.group_size,
                gather=spec.sampler.gather,
            )
            peaks["sample"] = live.peak
        else:
            live.restart()
            plain_weights(policy, _engine_dtype(recipe, spec))
            peaks["sample"], peaks["sync"] = live.now, live.peak
        resident = live.now
        host = 0 if on_cpu else whole * (share.size > 1)
        if learner is not None:
            lessons = largest_lessons(
                policy,
                prompt_tokens=prompt_tokens,
                new_tokens=recipe.sampling.max_new_tokens,
                prompts=max(1, recipe.prompts_per_step // recipe.mini_batches),
                group_size=recipe.group_size,
                token_budget=tokens_at_once(recipe.update, device_type),
            )
            if recipe.recomputes(name) is not False:
                live.restart()
                learner.recompute(lessons)
                peaks["recompute"] = live.peak
            live.restart()
            learner.learn(lessons)
            peaks["learn"] = live.peak
            resident = live.now
            live.restart()
            saved = _save(policy, learner, keep=on_cpu)
            peaks["checkpoint"] = live.peak
            host = max(host, 0 if on_cpu else saved)
        return Need(
            {phase: peaks[phase] for phase in PHASES if phase in peaks}, resident, weights, host
        )


class _NoTokenizer:
    """All that passes over a model want of a tokenizer."""

    pad_token_id = None


def _bare_model(name: str, spec: AgentSpec, config: PretrainedConfig) -> PreTrainedModel:
    """The model with its adapter, on the device that holds no numbers."""
    with torch.device("meta"):
        model: PreTrainedModel = AutoModelForCausalLM.from_config(
            copy.deepcopy(config),
            dtype=getattr(torch, spec.dtype),
            trust_remote_code=spec.trust_remote_code,
        )
        if spec.lora is not None:
            from hacrl.agents.policy.adapters import describe_adapter, inject_adapter

            inject_adapter(name, model, describe_adapter(name, spec), seed=0)
            for key, parameter in model.named_parameters():
                if f".{name}." in key:  # as in `add_adapter`
                    parameter.data = parameter.data.float()
    if not spec.learns:
        model.requires_grad_(False)
    model.eval()
    return model


def _put(model: PreTrainedModel, device: torch.device) -> None:
    """Give a model tensors on a device. Tied ones stay tied."""
    put: dict[int, torch.Tensor] = {}
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            for key, tensor in tensors.items():
                if tensor is None:
                    continue
                if id(tensor) not in put:
                    empty = torch.empty(tensor.shape, dtype=tensor.dtype, device=device)
                    is_parameter = isinstance(tensor, nn.Parameter)
                    put[id(tensor)] = (
                        nn.Parameter(empty, tensor.requires_grad) if is_parameter else empty
                    )
                tensors[key] = put[id(tensor)]  # type: ignore[assignment]


def _policy(name: str, spec: AgentSpec, model: PreTrainedModel, share: Share) -> Policy:
    return Policy(
        name,
        model,
        cast("PreTrainedTokenizerBase", _NoTokenizer()),
        stop_ids=(0,),
        template_args={},
        generation_config=GenerationConfig(),
        adapter=name if spec.lora else None,
        share=share,
    )


def _learner(policy: Policy, reference: Policy | None, recipe: Recipe, device_type: str) -> Learner:
    tokens = tokens_at_once(recipe.update, device_type)
    return Learner(
        policy,
        reference,
        temperature=recipe.sampling.temperature,
        algorithm=recipe_algorithm(recipe),
        mini_batches=1,
        update=recipe.update.model_copy(update={"micro_batch_tokens": tokens}),
        optimizer=recipe.optimizer,
        total_updates=2,
    )


def _save(policy: Policy, learner: Learner, *, keep: bool) -> int:
    """Gather what a checkpoint has, weights first.

    Args:
        keep: whether whole tensors stay beside the rank's parts, as they do where host memory is
            the device's.

    Returns:
        Bytes of the larger of the two, whole.
    """
    kept = whole_state(policy.model, keep=keep)
    del kept
    states: dict[str, Any] = {
        f"{number}:{key}": value
        for number, state in enumerate(learner.optimizer.state.values())
        for key, value in state.items()
    }
    kept = whole_on_host(states, keep=keep)
    del kept
    model = sum(p.numel() * p.element_size() for p in policy.model.parameters())
    return int(max(model, sum(v.numel() * v.element_size() for v in states.values())))


def _here(parameter: torch.Tensor) -> int:
    local: torch.Tensor = parameter.to_local() if isinstance(parameter, DTensor) else parameter
    return int(local.numel() * local.element_size())


def _engine_dtype(recipe: Recipe, spec: AgentSpec) -> torch.dtype:
    name = getattr(spec.sampler, "dtype", "auto")
    if name == "auto":
        name = "bfloat16" if recipe.update.autocast == "bfloat16" else spec.dtype
    dtype: torch.dtype = getattr(torch, name)
    return dtype

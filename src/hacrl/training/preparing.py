"""What a run of a recipe would work with, found out without loading any weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import torch
from transformers import PreTrainedTokenizerBase

from hacrl.agents.learning.algorithm import recipe_algorithm
from hacrl.agents.policy.encoding import encode_prompt
from hacrl.agents.policy.end_tokens import end_ids, load_generation_config
from hacrl.agents.policy.loading import sharing_key
from hacrl.agents.policy.reading import read
from hacrl.agents.policy.sizes import Memory, Parameters, count_parameters, memory
from hacrl.agents.policy.source import ModelUnavailable, load_config
from hacrl.agents.policy.templates import prints_the_clock
from hacrl.agents.policy.tokenizer import load_tokenizer
from hacrl.agents.policy.vocabulary import check_sizes
from hacrl.agents.recording import check_recordings
from hacrl.config.agents import AgentSpec
from hacrl.config.cautions import cautions
from hacrl.config.schema import Recipe
from hacrl.errors import UserError
from hacrl.evaluation.held_out import held_out_jobs
from hacrl.evaluation.jobs import Job
from hacrl.records import Prompt
from hacrl.tasks import load_prompts
from hacrl.tasks.fitting import fitting, prompt_limit
from hacrl.training.capacity import check_processes
from hacrl.training.loggers import check_loggers
from hacrl.verify import make_verifiers

__all__ = ["AgentFacts", "Footprint", "Preparation", "examine", "prepare"]


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What was found out about one agent; None where its files are not available here.

    Args:
        parameters: numbers of weights.
        positions: tokens of prompt and response that the model can address, None if unlimited.
        lengths: tokens of each prompt under the agent's own template.
        notes: what the user may want to know.
        warnings: what the user should know.
    """

    parameters: Parameters | None = None
    positions: int | None = None
    lengths: Sequence[int] | None = None
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes that an agent takes.

    Args:
        memory: what it holds all the time, without what it shares with an agent before it.
        shared: whether an agent before it has brought the model, and it adds its adapter alone.
        checkpoint: its part of a checkpoint, on the disk.
    """

    memory: Memory
    shared: bool
    checkpoint: int


@dataclass(frozen=True, slots=True)
class Preparation:
    """What a run would work with.

    Args:
        prompts: all that the tasks have.
        kept: those that are short enough for every agent.
        jobs: what is asked in evaluations.
        agents: those with a model, by name.
        lengths: tokens of each prompt, by agent whose tokenizer is available here.
        footprints: by name of an agent, None where its model is not available here.
        notes: what the user may want to know, in sentences.
        warnings: what the user should know, in sentences.
    """

    prompts: Sequence[Prompt]
    kept: Sequence[Prompt]
    jobs: Sequence[Job]
    agents: Mapping[str, AgentFacts]
    lengths: Mapping[str, Sequence[int]]
    footprints: Mapping[str, Footprint | None]
    notes: Sequence[str]
    warnings: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Reader:
    """An agent that can read prompts, and nothing else."""

    name: str
    tokenizer: PreTrainedTokenizerBase
    template_args: Mapping[str, object]
    clock: datetime
    stop_ids: tuple[int, ...]
    split_special_tokens: bool
    vocab_size: int


def prepare(recipe: Recipe) -> Preparation:
    """Find out what a run would work with, and what stands in its way.

    A Hub id that cannot be fetched is a warning, since the recipe may be meant for another machine.

    Raises:
        UserError: the run would fail.
    """
    check_processes(recipe)
    check_loggers(recipe.loggers)
    make_verifiers(recipe.tasks)
    recipe_algorithm(recipe)
    prompts = load_prompts(recipe.tasks)
    jobs = held_out_jobs(recipe)
    recorded = check_recordings(recipe, prompts)
    agents = {
        name: examine(name, spec, prompts, recipe.clock) for name, spec in recipe.models.items()
    }
    lengths = {name: facts.lengths for name, facts in agents.items() if facts.lengths is not None}
    limits = {
        name: prompt_limit(recipe.prompts, recipe.sampling.max_new_tokens, facts.positions)
        for name, facts in agents.items()
    }
    kept, too_long = fitting(recipe.prompts, prompts, lengths, limits)
    warnings = [text for facts in agents.values() for text in facts.warnings]
    warnings += [too_long] if too_long else []
    warnings += cautions(recipe)
    notes = [text for facts in agents.values() for text in facts.notes]
    notes += [text for reading in recorded.values() for text in reading.notes]
    return Preparation(
        prompts=prompts,
        kept=kept,
        jobs=jobs,
        agents=agents,
        lengths=lengths,
        footprints=_footprints(recipe, agents),
        notes=notes,
        warnings=warnings,
    )


def examine(
    name: str, spec: AgentSpec, prompts: Sequence[Prompt], clock: datetime | None
) -> AgentFacts:
    """Look at an agent's configuration and tokenizer.

    Args:
        clock: what its chat template takes for now; None: whenever a run starts.

    Raises:
        UserError: they cannot be used, or the template refuses a prompt.
    """
    _check_device(name, spec.device)
    try:
        config = load_config(name, spec)
    except ModelUnavailable as error:
        return AgentFacts(warnings=[f"model not available here: {error}"])
    parameters = count_parameters(name, spec, config)
    positions = getattr(config.get_text_config(), "max_position_embeddings", None)
    warnings = [_unmergeable(name, parameters.tied)] if parameters.tied else []
    try:
        tokenizer = load_tokenizer(name, spec)
    except ModelUnavailable as error:
        warnings.append(f"tokenizer not available here: {error}")
        return AgentFacts(parameters, positions, warnings=warnings)
    rows = config.get_text_config().vocab_size
    check_sizes(name, tokenizer, rows)
    reader = _Reader(
        name=name,
        tokenizer=tokenizer,
        template_args=spec.template_args,
        clock=clock or datetime.now(),
        stop_ids=end_ids(name, spec, tokenizer, load_generation_config(name, spec, config)),
        split_special_tokens=spec.split_special_tokens,
        vocab_size=rows,
    )
    lengths = [len(encode_prompt(reader, p)) for p in prompts]
    reading = read(reader, prompts)
    if clock is None and prints_the_clock(reader):
        warnings.append(
            f"agent {name}: its prompts have the time in them, so that a run that starts on "
            "another day differs; set clock, such as clock: 2026-01-01"
        )
    return AgentFacts(parameters, positions, lengths, reading.notes, [*warnings, *reading.warnings])


def _footprints(recipe: Recipe, agents: Mapping[str, AgentFacts]) -> dict[str, Footprint | None]:
    footprints: dict[str, Footprint | None] = {}
    loaded: set[str] = set()
    for name, spec in recipe.models.items():
        parameters = agents[name].parameters
        if parameters is None:
            footprints[name] = None
            continue
        held = memory(parameters, spec, reference=recipe.update.kl > 0)
        shared = parameters.adapter is not None and sharing_key(spec) in loaded
        if parameters.adapter is not None:
            loaded.add(sharing_key(spec))
        if parameters.adapter is not None and shared:
            held = replace(held, weights=parameters.adapter * torch.float32.itemsize)
        # What is trained, which is half as large as AdamW's two moments, and these.
        footprints[name] = Footprint(held, shared, held.adamw + held.adamw // 2)
    return footprints


def _unmergeable(name: str, layer: str) -> str:
    return (
        f"agent {name}: lora.target_modules has {layer}, whose weight is tied to another layer's; "
        "`hacrl export --merge` will refuse the adapter, which can only be used unmerged"
    )


def _check_device(name: str, device: str) -> None:
    """A device must make sense; it need not be in this machine."""
    try:
        kind = torch.device("cpu" if device == "auto" else device).type
        if kind == "meta":
            raise RuntimeError("it holds no numbers")
    except RuntimeError as error:
        raise UserError(
            f"agent {name}: torch knows no device {device!r}; write auto, cpu or cuda:0"
        ) from error

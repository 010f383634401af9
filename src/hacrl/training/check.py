"""`hacrl check`: what a recipe would run, found out without loading any weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import torch
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text
from transformers import PreTrainedTokenizerBase

from hacrl.agents.learning.algorithm import recipe_algorithm
from hacrl.agents.policy.encoding import encode_prompt
from hacrl.agents.policy.loading import (
    ModelUnavailable,
    load_config,
    load_tokenizer,
    sharing_key,
)
from hacrl.agents.policy.reading import read
from hacrl.agents.policy.sizes import Parameters, count_parameters, memory
from hacrl.agents.policy.vocabulary import check_sizes
from hacrl.agents.recording import check_recordings
from hacrl.config.cautions import cautions
from hacrl.config.evaluation import Evaluation
from hacrl.config.recording import RecordingSpec
from hacrl.config.schema import AgentSpec, Recipe
from hacrl.console.terminal import make_table
from hacrl.errors import UserError
from hacrl.evaluation.held_out import held_out_jobs
from hacrl.evaluation.jobs import Job
from hacrl.records import Prompt
from hacrl.tasks import load_prompts
from hacrl.tasks.fitting import fitting, prompt_limit
from hacrl.training.capacity import check_processes
from hacrl.training.loggers import check_loggers
from hacrl.verify import make_verifiers

__all__ = ["Finding", "check", "examine"]


@dataclass(frozen=True, slots=True)
class Finding:
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
class _Reader:
    """An agent that can read prompts, and nothing else."""

    name: str
    tokenizer: PreTrainedTokenizerBase
    template_args: Mapping[str, object]
    clock: datetime
    split_special_tokens: bool
    vocab_size: int


def check(recipe: Recipe, console: Console) -> None:
    """Print what the recipe would run, and what stands in its way.

    A hub id that cannot be fetched is a warning, since the recipe may be meant for another machine.

    Raises:
        UserError: the run would fail.
    """
    check_processes(recipe)
    check_loggers(recipe.loggers)
    make_verifiers(recipe.tasks)
    recipe_algorithm(recipe)
    prompts = load_prompts(recipe.tasks)
    jobs = held_out_jobs(recipe)
    clock = recipe.clock or datetime.now()
    recorded = check_recordings(recipe, prompts)
    findings = {name: examine(name, spec, prompts, clock) for name, spec in recipe.models.items()}
    lengths = {name: f.lengths for name, f in findings.items() if f.lengths is not None}
    limits = {
        name: prompt_limit(recipe.prompts, recipe.sampling.max_new_tokens, finding.positions)
        for name, finding in findings.items()
    }
    kept, too_long = fitting(recipe.prompts, prompts, lengths, limits)
    warnings = [text for finding in findings.values() for text in finding.warnings]
    warnings += [too_long] if too_long else []
    warnings += cautions(recipe)

    console.print(
        f"recipe {recipe.name}: {recipe.steps} steps of {recipe.prompts_per_step} prompts, "
        f"method {recipe.method_name}, seed {recipe.seed}",
        soft_wrap=True,
    )
    for table in (
        _agents(recipe, findings, console),
        *([_tasks(recipe, prompts, kept, console)] if len(recipe.tasks) > 1 else []),
        _work(recipe, len(prompts), len(kept), lengths),
        _memory(recipe, findings, console),
    ):
        console.print()
        console.print(table)
    if recipe.evaluation is not None:
        console.print(f"\n{_evaluation(recipe.evaluation, jobs)}", soft_wrap=True)
    console.print("Activations, logits and the sampler's cache come on top.\n")
    notes = [text for finding in findings.values() for text in finding.notes]
    notes += [text for reading in recorded.values() for text in reading.notes]
    for text in notes:
        console.print(f"note: {text}", markup=False, soft_wrap=True)
    for text in warnings:
        console.print(f"warning: {text}", markup=False, soft_wrap=True)
    console.print(f"ok, with {_plural(len(warnings), 'warning')}" if warnings else "ok")


def examine(name: str, spec: AgentSpec, prompts: Sequence[Prompt], clock: datetime) -> Finding:
    """Look at an agent's configuration and tokenizer.

    Args:
        clock: what its chat template takes for now.

    Raises:
        UserError: they cannot be used, or the template refuses a prompt.
    """
    _check_device(name, spec.device)
    try:
        config = load_config(name, spec)
    except ModelUnavailable as error:
        return Finding(warnings=[f"model not available here: {error}"])
    parameters = count_parameters(name, spec, config)
    positions = getattr(config.get_text_config(), "max_position_embeddings", None)
    warnings = [_unmergeable(name, parameters.tied)] if parameters.tied else []
    try:
        tokenizer = load_tokenizer(name, spec)
    except ModelUnavailable as error:
        warnings.append(f"tokenizer not available here: {error}")
        return Finding(parameters, positions, warnings=warnings)
    rows = config.get_text_config().vocab_size
    check_sizes(name, tokenizer, rows)
    reader = _Reader(name, tokenizer, spec.template_args, clock, spec.split_special_tokens, rows)
    lengths = [len(encode_prompt(reader, p)) for p in prompts]
    found = read(reader, prompts)
    return Finding(parameters, positions, lengths, found.notes, [*warnings, *found.warnings])


def _unmergeable(name: str, layer: str) -> str:
    return (
        f"agent {name}: lora.target_modules has {layer}, whose weight is also another layer's; "
        "`hacrl export --merge` will refuse the adapter, which can be used beside its model alone"
    )


def _check_device(name: str, device: str) -> None:
    """A device must make sense; it need not be in this machine."""
    try:
        kind = torch.device("cpu" if device == "auto" else device).type
        if kind == "meta":
            raise RuntimeError("it holds no numbers")
    except RuntimeError as error:
        raise UserError(
            f"agent {name}: device {device!r} is none that torch knows; write auto, cpu or cuda:0"
        ) from error


def _agents(recipe: Recipe, findings: Mapping[str, Finding], console: Console) -> Table:
    table = make_table(console)
    table.add_column("agent")
    table.add_column("model", overflow="fold")
    table.add_column("parameters", justify="right")
    for name in ("dtype", "device", "learns from"):
        table.add_column(name)
    table.add_column("updates/step", justify="right")
    for name, spec in recipe.agents.items():
        if isinstance(spec, RecordingSpec):
            table.add_row(name, Text(f"recording {spec.path}"), *["-"] * 5)
            continue
        parameters = findings[name].parameters
        table.add_row(
            name,
            Text(spec.model if spec.gguf is None else f"{spec.model} ({spec.gguf})"),
            "?" if parameters is None else _describe(parameters),
            spec.dtype,
            Text(spec.device),
            ", ".join(("itself", *recipe.sources(name))) if spec.learns else "-",
            str(recipe.updates_per_step(name)) if spec.learns else "-",
        )
    return table


def _tasks(
    recipe: Recipe, prompts: Sequence[Prompt], kept: Sequence[Prompt], console: Console
) -> Table:
    """What is mixed: a task's epochs follow from its share of the places, not from its size."""
    table = make_table(console)
    table.add_column("task")
    for name in ("source", "verifier"):
        table.add_column(name)
    for name in ("prompts", "used", "share", "epochs"):
        table.add_column(name, justify="right")
    total = sum(task.weight for task in recipe.tasks.values())
    for name, task in recipe.tasks.items():
        used = sum(prompt.task == name for prompt in kept)
        share = task.weight / total
        table.add_row(
            name,
            task.source.type,
            task.verifier.type,
            f"{sum(prompt.task == name for prompt in prompts):,}",
            f"{used:,}",
            f"{share:.1%}",
            f"{recipe.steps * recipe.prompts_per_step * share / used:.2f}",
        )
    return table


def _work(recipe: Recipe, prompts: int, kept: int, lengths: Mapping[str, Sequence[int]]) -> Table:
    """Prompts, rollouts and tokens. Whatever is a limit says so."""
    own = recipe.prompts_per_step * recipe.group_size
    step = own * len(recipe.models)
    tokens = own * recipe.sampling.max_new_tokens
    epochs = recipe.steps * recipe.prompts_per_step / kept
    longest = ", ".join(f"{name} {max(ns)}" for name, ns in lengths.items())
    table = Table.grid(padding=(0, 2))
    table.add_row("prompts", f"{prompts:,}, of which {kept:,} are used: {epochs:.2f} epochs")
    table.add_row("longest", f"{longest or '?'} tokens")
    table.add_row("rollouts", f"{own:,} a step and agent, {step:,} a step in all")
    table.add_row(
        "new tokens",
        f"at most {tokens:,} a step and agent, {tokens * len(recipe.models):,} a step in all, "
        f"{tokens * len(recipe.models) * recipe.steps:,} in the run",
    )
    return table


def _evaluation(rule: Evaluation, jobs: Sequence[Job]) -> str:
    times = ["at the start"] * rule.at_start
    times += [f"every {_plural(rule.every, 'step')}"] if rule.every else []
    tasks = ", ".join(f"{job.name} ({_plural(len(job.prompts), 'problem')})" for job in jobs)
    how = "greedy" if rule.greedy else f"at temperature {rule.temperature:g}"
    return (
        f"evaluation {', '.join([*times, 'after the last step'])}: {tasks}, "
        f"{_plural(rule.samples, 'response')} each, {how}, at most "
        f"{jobs[0].settings.max_new_tokens:,} new tokens"
    )


def _memory(recipe: Recipe, findings: Mapping[str, Finding], console: Console) -> Table:
    table = make_table(console)
    table.add_column("memory")
    for name in ("weights", "gradients", "AdamW", "reference", "total"):
        table.add_column(name, justify="right")
    everything = saved = 0
    loaded: set[str] = set()
    for name, spec in recipe.models.items():
        parameters = findings[name].parameters
        if parameters is None:
            table.add_row(name, *["?"] * 5)
            continue
        held = memory(parameters, spec, reference=recipe.update.kl > 0)
        weights, shown = held.weights, decimal(held.weights)
        saved += held.adamw + held.adamw // 2
        if parameters.adapter is not None:
            if (key := sharing_key(spec)) in loaded:  # another agent has brought the model
                weights = parameters.adapter * torch.float32.itemsize
                shown = f"shared + {decimal(weights)}"
            loaded.add(key)
        total = held.total - held.weights + weights
        everything += total
        sizes = (held.gradients, held.adamw, held.reference, total)
        label = name if spec.ranks == 1 else f"{name}, {spec.ranks} ranks in all"
        table.add_row(label, shown, *(decimal(size) if size else "-" for size in sizes))
    if everything:
        more = "> " * any(found.parameters is None for found in findings.values())
        if len(recipe.models) > 1:
            table.add_row("together", *[""] * 4, f"{more}{decimal(everything)}")
        table.add_row("a checkpoint", *[""] * 4, f"{more}{decimal(saved)}")
    return table


def _describe(parameters: Parameters) -> str:
    if parameters.adapter is None:
        return _count(parameters.own)
    return f"{_count(parameters.own)} + {_count(parameters.adapter)}"


def _count(number: int) -> str:
    """A number of parameters as people write it, such as 134.5M."""
    for size, unit in ((10**9, "B"), (10**6, "M"), (10**3, "K")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return str(number)


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("s" if number != 1 else "")

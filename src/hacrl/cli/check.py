"""The command `hacrl check`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from hacrl.cli.arguments import OverridesArgument, RecipeArgument, read_recipe
from hacrl.config import Recipe
from hacrl.config.evaluation import Evaluation
from hacrl.config.recording import RecordingSpec
from hacrl.console.terminal import make_console, make_table, quieten_libraries
from hacrl.planning.devices import parse_devices

if TYPE_CHECKING:
    from hacrl.agents.policy.sizes import Parameters
    from hacrl.evaluation.jobs import Job
    from hacrl.training.preparing import Footprint, Preparation

__all__ = ["check", "print_preparation"]


def check(
    recipe: RecipeArgument,
    overrides: OverridesArgument = None,
    gpus: Annotated[
        str | None,
        typer.Option(
            metavar="DEVICES",
            help="Also say what a step needs of such devices: 8x80GB, 1x24GB, or cpu for this "
            "machine's.",
        ),
    ] = None,
) -> None:
    """Validate a recipe and print what it would run.

    Loads no weights. Shows the agents with their parameters and memory, who learns from whom, how
    many prompts are short enough for every agent, and how many rollouts, updates and tokens there
    will be.

    \b
    Examples:
      hacrl check my.yaml
      hacrl check my.yaml sampling.group_size=16 prompts.max_tokens=256
      hacrl check my.yaml --gpus 8x80GB
    """
    devices = None if gpus is None else parse_devices(gpus)
    settings = read_recipe(recipe, overrides)
    quieten_libraries()
    from hacrl.training.preparing import prepare

    console = make_console()
    print_preparation(settings, prepare(settings), console)
    if devices is not None:
        from hacrl.cli.plan import print_plan

        print_plan(settings, devices, console)


def print_preparation(recipe: Recipe, preparation: Preparation, console: Console) -> None:
    """Print what a recipe would run, with notes and warnings."""
    console.print(
        f"recipe {recipe.name}: {recipe.steps} steps of {recipe.prompts_per_step} prompts, "
        f"method {recipe.method_name}, seed {recipe.seed}",
        soft_wrap=True,
    )
    for table in (
        _agents(recipe, preparation, console),
        *([_tasks(recipe, preparation, console)] if len(recipe.tasks) > 1 else []),
        _work(recipe, preparation),
        _memory(recipe, preparation.footprints, console),
    ):
        console.print()
        console.print(table)
    if recipe.evaluation is not None:
        console.print(f"\n{_evaluation(recipe.evaluation, preparation.jobs)}", soft_wrap=True)
    console.print("Activations, logits and the sampler's cache need memory as well.\n")
    for text in preparation.notes:
        console.print(f"note: {text}", markup=False, soft_wrap=True)
    warnings = preparation.warnings
    for text in warnings:
        console.print(f"warning: {text}", markup=False, soft_wrap=True)
    console.print(f"ok, with {_plural(len(warnings), 'warning')}" if warnings else "ok")


def _agents(recipe: Recipe, preparation: Preparation, console: Console) -> Table:
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
        parameters = preparation.agents[name].parameters
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


def _tasks(recipe: Recipe, preparation: Preparation, console: Console) -> Table:
    """What is mixed: a task's epochs follow from its share of the places, not from its size."""
    table = make_table(console)
    table.add_column("task")
    for name in ("source", "verifier"):
        table.add_column(name)
    for name in ("prompts", "used", "share", "epochs"):
        table.add_column(name, justify="right")
    total = sum(task.weight for task in recipe.tasks.values())
    for name, task in recipe.tasks.items():
        used = sum(prompt.task == name for prompt in preparation.kept)
        share = task.weight / total
        table.add_row(
            name,
            task.source.type,
            task.verifier.type,
            f"{sum(prompt.task == name for prompt in preparation.prompts):,}",
            f"{used:,}",
            f"{share:.1%}",
            f"{recipe.steps * recipe.prompts_per_step * share / used:.2f}",
        )
    return table


def _work(recipe: Recipe, preparation: Preparation) -> Table:
    """Prompts, rollouts and tokens. Whatever is a limit says so."""
    prompts, kept = len(preparation.prompts), len(preparation.kept)
    own = recipe.prompts_per_step * recipe.group_size
    step = own * len(recipe.models)
    tokens = own * recipe.sampling.max_new_tokens
    epochs = recipe.steps * recipe.prompts_per_step / kept
    longest = ", ".join(f"{name} {max(ns)}" for name, ns in preparation.lengths.items())
    table = Table.grid(padding=(0, 2))
    table.add_row("prompts", f"{prompts:,}, of which {kept:,} are used: {epochs:.2f} epochs")
    table.add_row("longest", f"{longest or '?'} tokens")
    table.add_row("rollouts", f"{own:,} per step and agent, {step:,} per step in total")
    table.add_row(
        "new tokens",
        f"at most {tokens:,} per step and agent, {tokens * len(recipe.models):,} per step in "
        f"total, {tokens * len(recipe.models) * recipe.steps:,} in the run",
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


def _memory(recipe: Recipe, footprints: Mapping[str, Footprint | None], console: Console) -> Table:
    table = make_table(console)
    table.add_column("memory")
    for name in ("weights", "gradients", "AdamW", "reference", "total"):
        table.add_column(name, justify="right")
    for name, footprint in footprints.items():
        if footprint is None:
            table.add_row(name, *["?"] * 5)
            continue
        held, ranks = footprint.memory, recipe.models[name].ranks
        weights = f"{'shared + ' * footprint.shared}{decimal(held.weights)}"
        sizes = (held.gradients, held.adamw, held.reference, held.total)
        label = name if ranks == 1 else f"{name}, {ranks} ranks in total"
        table.add_row(label, weights, *(decimal(size) if size else "-" for size in sizes))
    known = [footprint for footprint in footprints.values() if footprint is not None]
    if known:
        more = "> " * (len(known) < len(footprints))
        together = sum(footprint.memory.total for footprint in known)
        saved = sum(footprint.checkpoint for footprint in known)
        if len(footprints) > 1:
            table.add_row("together", *[""] * 4, f"{more}{decimal(together)}")
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

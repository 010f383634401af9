"""What `hacrl check --gpus` prints: memory by agent and phase, and what to change."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.filesize import decimal

from hacrl.agents.policy.source import load_config
from hacrl.config import Recipe
from hacrl.console.terminal import make_table
from hacrl.planning.devices import Devices
from hacrl.planning.placement import engine
from hacrl.planning.plan import Fit, Planner
from hacrl.planning.rehearsal import PHASES

__all__ = ["print_plan"]


def print_plan(recipe: Recipe, devices: Devices, console: Console) -> None:
    """Rehearse a step of every agent and print what it needs of its devices.

    Raises:
        UserError: a model's configuration cannot be found here.
    """
    configs = {name: load_config(name, spec) for name, spec in recipe.models.items()}
    planner = Planner(configs, recipe.prompts.max_tokens, devices, _tell)
    fit = planner.fit(recipe)
    table = make_table(console)
    table.add_column("memory of a rank")
    for phase in PHASES:
        table.add_column(phase, justify="right")
    for name, need in fit.needs.items():
        sizes = (
            need.peaks[phase] + engine(recipe, name, phase, devices) if phase in need.peaks else 0
            for phase in PHASES
        )
        ranks = recipe.models[name].ranks
        label = name if ranks == 1 else f"{name}, each of {ranks} ranks"
        table.add_row(label, *(decimal(size) if size else "-" for size in sizes))
    console.print(f"\nOn {devices}, with prompts of {recipe.prompts.max_tokens:,} tokens:")
    console.print(table)
    for name, need in fit.needs.items():
        if need.host:
            console.print(
                f"agent {name} needs {decimal(need.host)} of host memory for each rank to load, "
                "or to save",
                soft_wrap=True,
            )
    _print_devices(fit, devices, console)
    if fit.fits:
        console.print("it fits")
        return
    if not fit.devices:
        ranks = sum(spec.ranks for spec in recipe.models.values())
        console.print(f"it does not fit: {ranks} ranks want more than {devices.count} devices")
        return
    changes = planner.change(recipe)
    if changes is None:
        console.print("it does not fit, and no change that was tried makes it fit")
    else:
        console.print(f"it fits with {' '.join(changes)}", markup=False, soft_wrap=True)


def _print_devices(fit: Fit, devices: Devices, console: Console) -> None:
    for number, (agents, sizes) in enumerate(fit.devices):
        phase = max(sizes, key=lambda key: sizes[key])
        size = sizes[phase]
        over = size > devices.memory
        console.print(
            f"device {number} ({', '.join(agents)}): at most {decimal(size)}, in {phase}"
            + (f", {decimal(size - devices.memory)} too much" if over else ""),
            soft_wrap=True,
        )


def _tell(what: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"rehearsing {what}\n")

"""Which agents share a device, and how much of it they need together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hacrl.config.schema import Recipe
from hacrl.planning.devices import Devices
from hacrl.planning.rehearsal import Need

__all__ = ["engine", "needed", "place"]

_ASLEEP = 10**9
"""What a sleeping engine keeps of a GPU, mostly CUDA's context. An estimate."""


def place(recipe: Recipe, devices: Devices) -> list[tuple[str, ...]] | None:
    """The agents of each device, a name for each of their ranks; None if there are too few devices.

    Agents of one process share the first device. On a cluster each rank has what
    `agents.*.resources.gpus` says, a whole device by default.
    """
    if recipe.fleet.type == "local" or devices.type == "cpu":
        shared = tuple(name for name, spec in recipe.models.items() for _ in range(spec.ranks))
        return [shared, *[()] * (devices.count - 1)]
    taken: list[tuple[str, ...]] = [()] * devices.count
    free = [1.0] * devices.count
    for name, spec in recipe.models.items():
        share = 1.0 if spec.resources.gpus is None else spec.resources.gpus
        for _ in range(spec.ranks):
            wanted = max(1, int(share))
            part = min(share, 1.0)
            open_devices = [i for i, left in enumerate(free) if left >= part - 1e-9][:wanted]
            if len(open_devices) < wanted:
                return None
            for i in open_devices:
                free[i] -= part
            taken[open_devices[0]] += (name,)
    return taken


def needed(
    recipe: Recipe, agents: Sequence[str], needs: Mapping[str, Need], devices: Devices
) -> dict[str, int]:
    """Bytes that the agents of one device need of it at most, by phase.

    Agents of one process work one after another, with what each keeps between its phases beside the
    one that works; those that take turns have it in host memory. Agents on a cluster work at the
    same time.
    """
    peaks = {
        name: {phase: size + engine(recipe, name, phase, devices) for phase, size in need.items()}
        for name, need in ((name, needs[name].peaks) for name in agents)
    }
    phases = {phase: None for name in agents for phase in peaks[name]}
    if recipe.fleet.in_turns:
        return {phase: max(peaks[name].get(phase, 0) for name in agents) for phase in phases}
    if recipe.fleet.type == "ray":
        return {phase: sum(peaks[name].get(phase, 0) for name in agents) for phase in phases}
    kept = {name: needs[name].resident + engine(recipe, name, "", devices) for name in agents}
    return {
        phase: sum(kept.values())
        + max(peaks[name].get(phase, kept[name]) - kept[name] for name in agents)
        for phase in phases
    }


def engine(recipe: Recipe, name: str, phase: str, devices: Devices) -> int:
    """Bytes of an agent's inference engine, beside the learner, in a phase."""
    sampler = recipe.models[name].sampler
    if sampler.type != "vllm":
        return 0
    if devices.type == "cpu":
        return round(sampler.cpu_cache * 2**30)
    whole = round(sampler.gpu_memory_utilization * devices.memory)
    return whole if phase in ("sample", "sync") or not sampler.sleep else _ASLEEP

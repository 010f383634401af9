"""What each agent takes of a Ray cluster, and whether the cluster can give it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import ray

from hacrl.config import Recipe
from hacrl.config.agents import AgentSpec
from hacrl.config.devices import engine_devices
from hacrl.errors import UserError

__all__ = ["fits_labels", "obstacle", "options", "threads"]


def options(recipe: Recipe, name: str) -> dict[str, Any]:
    """Options of the actor of each of an agent's ranks. To be called once connected.

    Raises:
        UserError: its engine would be spread over more GPUs than it has.
    """
    spec = recipe.models[name]
    wanted = spec.resources
    if (gpus := _gpus(spec)) and engine_devices(spec) > max(1, gpus):
        raise UserError(
            f"agents.{name}.sampler.tensor_parallel_size: {engine_devices(spec)} devices, but "
            f"its process gets one GPU; set agents.{name}.resources.gpus: {engine_devices(spec)}"
        )
    return {
        "num_cpus": wanted.cpus,
        "num_gpus": gpus,
        "resources": dict(wanted.custom),
        **({"label_selector": dict(wanted.node)} if wanted.node else {}),
    }


def threads(recipe: Recipe, name: str) -> int:
    """CPU threads of an agent's process."""
    return recipe.threads or max(1, int(recipe.models[name].resources.cpus))


def obstacle(recipe: Recipe, agent: str | None = None) -> str | None:
    """Why the agents cannot all be placed on the cluster's present nodes, even if no other program
    used them; None if they can.

    Args:
        agent: speak of what concerns this one alone.
    """
    wants = {name: _amounts(options(recipe, name)) for name in recipe.models}
    nodes = [node for node in ray.nodes() if node["Alive"]]
    lacking = [_lacking(recipe, wants, agent)]
    for name in recipe.models if agent is None else (agent,):
        lacking.append(_unfit(name, wants[name], recipe.models[name].resources.node, nodes))
    return next((text for text in lacking if text is not None), None)


def fits_labels(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether a node with these labels is what Ray's `label_selector` asks for.

    A value is `x`, `!x`, `in(x, y)` or `!in(x, y)`. A node without the label is none of any.
    """
    for key, value in wanted.items():
        positive = value.removeprefix("!")
        one_of = positive.startswith("in(") and positive.endswith(")")
        values = positive[3:-1].split(",") if one_of else [positive]
        if (labels.get(key) in {label.strip() for label in values}) == value.startswith("!"):
            return False
    return True


def _lacking(
    recipe: Recipe, wants: Mapping[str, Mapping[str, float]], agent: str | None
) -> str | None:
    """What all agents together want beyond what all nodes together have."""
    total = Counter[str]()
    for name, spec in recipe.models.items():
        total.update({kind: amount * spec.ranks for kind, amount in wants[name].items()})
    present: Mapping[str, float] = ray.cluster_resources()
    lacking = [
        f"{amount:g} {kind}, of which it has {present.get(kind, 0.0):g}"
        for kind, amount in total.items()
        if amount > present.get(kind, 0.0) and (agent is None or kind in wants[agent])
    ]
    return f"the agents want {' and '.join(lacking)} in all" if lacking else None


def _unfit(
    name: str,
    wants: Mapping[str, float],
    labels: Mapping[str, str],
    nodes: Iterable[Mapping[str, Any]],
) -> str | None:
    """Why no single node could take a rank of an agent."""
    nodes = list(nodes)
    labelled = [node for node in nodes if fits_labels(node["Labels"], labels)]
    if not labelled:
        there = {
            f"{key}: {node['Labels'][key]}"
            for node in nodes
            for key in labels
            if key in node["Labels"]
        }
        return (
            f"no node has the labels of agents.{name}.resources.node, {_listed(labels)} "
            f"(there {'is ' + ', '.join(sorted(there)) if there else 'are none of these'})"
        )
    if any(
        all(node["Resources"].get(kind, 0.0) >= amount for kind, amount in wants.items())
        for node in labelled
    ):
        return None
    wanted = " and ".join(f"{amount:g} {kind}" for kind, amount in wants.items())
    where = f" with {_listed(labels)}" if labels else ""
    return f"no single node{where} has {wanted}, as agents.{name}.resources asks"


def _listed(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}: {value}" for key, value in labels.items())


def _amounts(taken: Mapping[str, Any]) -> dict[str, float]:
    named = {"CPU": taken["num_cpus"], "GPU": taken["num_gpus"], **taken["resources"]}
    return {kind: amount for kind, amount in named.items() if amount}


def _gpus(spec: AgentSpec) -> float:
    if spec.resources.gpus is not None:
        return spec.resources.gpus
    on_cpu = spec.device.startswith("cpu")
    return 1.0 if not on_cpu and ray.cluster_resources().get("GPU", 0.0) > 0 else 0.0

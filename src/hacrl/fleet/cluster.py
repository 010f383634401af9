"""The Ray cluster of a run, and what each agent takes of it."""

from __future__ import annotations

import logging
import os
import socket
from collections import Counter
from collections.abc import Mapping
from typing import Any

import ray

from hacrl.config import Recipe
from hacrl.config.schema import AgentSpec
from hacrl.errors import UserError, first_line

__all__ = ["connect", "is_alive", "options", "shortage", "threads"]

_LOCAL = "local"
_REACHED = 5.0
"""Seconds within which a node must accept a connection."""


def connect(recipe: Recipe) -> bool:
    """Join the cluster that the recipe names, or start one on this machine.

    Returns:
        Whether it was done here: a program that is connected already stays so.

    Raises:
        UserError: there is none at the address.
    """
    if ray.is_initialized():
        return False
    # Ray's own default, said aloud since it warns of a change to come: without a GPU of its own, an
    # agent sees none.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
    address = recipe.fleet.address or os.environ.get("RAY_ADDRESS") or _LOCAL
    _check_reachable(address)
    here: dict[str, Any] = {}
    if address == _LOCAL:
        # A recipe runs on any machine: agents may outnumber its cores, and take turns.
        wanted = sum(agent.resources.cpus * agent.ranks for agent in recipe.agents.values())
        here = {
            "num_cpus": max(os.cpu_count() or 1, int(-(-wanted // 1))),
            "include_dashboard": False,
        }
    try:
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, **here)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UserError(
            f"fleet.address: no Ray cluster can be joined at {address} ({first_line(error)})"
        ) from error
    return True


def _check_reachable(address: str) -> None:
    """Say at once what `ray.init` would find out after many minutes."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or "/" in host:
        return
    try:
        with socket.create_connection((host, int(port)), timeout=_REACHED):
            pass
    except OSError as error:
        raise UserError(
            f"fleet.address: no Ray cluster can be joined at {address} ({error.strerror or error})"
        ) from error


def options(recipe: Recipe, name: str) -> dict[str, Any]:
    """Options of the actor of each of an agent's ranks. To be called once connected."""
    spec = recipe.agents[name]
    wanted = spec.resources
    return {
        "num_cpus": wanted.cpus,
        "num_gpus": _gpus(spec),
        "resources": dict(wanted.custom),
        **({"label_selector": dict(wanted.node)} if wanted.node else {}),
    }


def threads(recipe: Recipe, name: str) -> int:
    """CPU threads of an agent's process."""
    return recipe.threads or max(1, int(recipe.agents[name].resources.cpus))


def is_alive(node: str) -> bool:
    """Whether a node is part of the cluster and can be reached.

    It is asked itself, since Ray waits for some missed heartbeats before it gives up a node.
    """
    for known in ray.nodes():
        if known["NodeID"] == node and known["Alive"]:
            place = (known["NodeManagerAddress"], known["NodeManagerPort"])
            try:
                with socket.create_connection(place, timeout=_REACHED):
                    return True
            except OSError:
                return False
    return False


def shortage(recipe: Recipe, agent: str | None = None) -> str | None:
    """What all agents together want beyond what the cluster has now, None if it suffices.

    Args:
        agent: speak of the kinds of resources alone that this one wants.
    """
    wants = {
        name: _amounts(options(recipe, name), spec.ranks) for name, spec in recipe.agents.items()
    }
    total = sum((Counter(own) for own in wants.values()), Counter[str]())
    present: Mapping[str, float] = ray.cluster_resources()
    lacking = [
        f"{amount:g} {kind}, of which it has {present.get(kind, 0.0):g}"
        for kind, amount in total.items()
        if amount > present.get(kind, 0.0) and (agent is None or kind in wants[agent])
    ]
    return f"the agents want {' and '.join(lacking)} in all" if lacking else None


def _amounts(taken: Mapping[str, Any], ranks: int) -> dict[str, Any]:
    named = {"CPU": taken["num_cpus"], "GPU": taken["num_gpus"], **taken["resources"]}
    return {kind: amount * ranks for kind, amount in named.items() if amount}


def _gpus(spec: AgentSpec) -> float:
    if spec.resources.gpus is not None:
        return spec.resources.gpus
    on_cpu = spec.device.startswith("cpu")
    return 1.0 if not on_cpu and ray.cluster_resources().get("GPU", 0.0) > 0 else 0.0

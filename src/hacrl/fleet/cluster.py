"""The Ray cluster of a run: joined, or started on this machine."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from typing import Any, Literal

import ray
from ray.exceptions import RayError

from hacrl.config import Recipe
from hacrl.errors import UserError, first_line

__all__ = ["Connection", "connect", "is_alive", "share"]

Connection = Literal["found", "joined", "own"]
"""Whose the cluster is: the program was connected before, the run has joined one, or has started
one on this machine, which no other machine can join."""

_LOCAL = "local"
_REACHED = 5.0
"""Seconds within which a node must accept a connection."""
_SHORT = "/tmp/ray"
"""Where Ray keeps its files unless the environment names another place."""


def connect(recipe: Recipe, note: Callable[[str], None]) -> Connection:
    """Join the cluster that the recipe names, or start one on this machine.

    Args:
        note: called with where Ray's files are, if that is not where the environment says.

    Raises:
        UserError: there is none at the address, or none can be started.
    """
    if ray.is_initialized():
        return "found"
    # Ray's own default, said aloud since it warns of a change to come: without a GPU of its own, an
    # agent sees none.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
    address = recipe.fleet.address or os.environ.get("RAY_ADDRESS") or _LOCAL
    if address == _LOCAL:
        _start(recipe, note)
        return "own"
    _check_reachable(address)
    try:
        _init(address)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UserError(
            f"fleet.address: no Ray cluster can be joined at {address} ({first_line(error)})"
        ) from error
    return "joined"


def share(value: Any, what: str) -> Any:
    """Put a value where all agents can read it.

    Raises:
        UserError: there is no room for it.
    """
    try:
        return ray.put(value)
    except RayError as error:
        raise UserError(
            f"fleet: Ray's object store on this machine has no room for {what} "
            f"({type(error).__name__}); free memory and disk here, or lower prompts_per_step"
        ) from error


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


def _start(recipe: Recipe, note: Callable[[str], None]) -> None:
    """Start Ray here, with its files where the environment says, or else in the usual place.

    The sockets of all its processes are files, whose paths may have about a hundred bytes.
    """
    # A recipe runs on any machine: agents may outnumber its cores, and take turns.
    wanted = sum(agent.resources.cpus * agent.ranks for agent in recipe.models.values())
    cores = max(os.cpu_count() or 1, int(-(-wanted // 1)))
    here: dict[str, Any] = {"num_cpus": cores, "include_dashboard": False}
    # Ray's own default lets everything else on the machine go before its workers, which are the
    # agents: beside busy programs they hardly moved.
    os.environ.setdefault("RAY_worker_niceness", "0")
    try:
        try:
            _init(_LOCAL, **here)
        except OSError as error:
            variable = "RAY_TMPDIR" if "RAY_TMPDIR" in os.environ else "TMPDIR"
            if variable not in os.environ or isinstance(error, ConnectionError):
                raise
            why = f"Ray cannot keep its files below {variable} ({_why(error)})"
            try:
                _init(_LOCAL, **here, _temp_dir=_SHORT)
            except OSError as again:
                raise UserError(
                    f"{why}, nor in {_SHORT} ({_why(again)}); set RAY_TMPDIR to a folder with a "
                    "short path"
                ) from again
            note(f"{why}; they are in {_SHORT}")
    except Exception as error:
        # Ray raises a bare Exception where its processes are late, as on a machine that is busy.
        if type(error) is not Exception and not isinstance(
            error, OSError | RuntimeError | ValueError
        ):
            raise
        raise UserError(
            f"fleet: Ray cannot be started on this machine ({first_line(error)})"
        ) from error


def _why(error: OSError) -> str:
    """Ray's own check of the length of paths gives no number of an error."""
    return error.strerror or "the paths of its sockets would be too long"


def _init(address: str, **options: Any) -> None:
    ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, **options)


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

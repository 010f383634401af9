"""What to say of an agent that is gone: which, where, in which phase, and most likely why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from ray.exceptions import (
    ActorPlacementGroupRemoved,
    ActorUnschedulableError,
    GetTimeoutError,
    LocalRayletDiedError,
    NodeDiedError,
    ObjectLostError,
    ObjectStoreFullError,
    OutOfDiskError,
    OutOfMemoryError,
    RayActorError,
    RayError,
    RayTaskError,
    RpcError,
    RuntimeEnvSetupError,
    TaskPlacementGroupRemoved,
    TaskUnschedulableError,
    WorkerCrashedError,
)
from safetensors import SafetensorError

from hacrl.errors import UserError, first_line
from hacrl.fleet.worker import NotLoaded, Place, RankSilent

__all__ = ["Loss", "is_loss", "likely_cause", "own_error"]

_NODE_GONE = "its node has left the cluster"
_CAUSES: Sequence[tuple[type[RayError] | tuple[type[RayError], ...], str]] = (
    ((NodeDiedError, LocalRayletDiedError), _NODE_GONE),
    (OutOfDiskError, "the disk of its node, or of this one, has no room for Ray's objects"),
    (ObjectStoreFullError, "Ray's object store on its node, or on this one, is full"),
    (ObjectLostError, "what it was sent, or its answer, was lost with another process or node"),
    (RuntimeEnvSetupError, "the runtime environment of the Ray job cannot be made on its node"),
    (
        (
            *(ActorUnschedulableError, TaskUnschedulableError),
            *(ActorPlacementGroupRemoved, TaskPlacementGroupRemoved),
        ),
        "Ray has no place for it; see agents.*.resources",
    ),
    (RpcError, "Ray cannot be reached; its head may have ended"),
    (
        (RayActorError, WorkerCrashedError),
        "its process ended at once, most often killed by the system for lack of memory",
    ),
)
"""What an error of Ray's means for an agent, by its class, the first that fits. Ray's own texts
speak of actors and tasks, and change with its version."""


@dataclass(frozen=True, slots=True)
class Loss:
    """An agent that is gone. `place` is None if it was never anywhere, `rank` if it has but one or
    it is not known which of them failed; then the place is that of the first."""

    agent: str
    place: Place | None
    phase: str
    cause: str
    rank: int | None = None

    def __str__(self) -> str:
        where = f"process {self.place.process} on {self.place.host}" if self.place else "not placed"
        which = "" if self.rank is None else f", rank {self.rank}"
        return f"agent {self.agent}{which} ({where}) was lost in {self.phase}: {self.cause}"


def is_loss(error: RayError) -> bool:
    """Whether an error means that the agent is gone, as opposed to an error of the agent's own."""
    error = _innermost(error)
    if not isinstance(error, RayTaskError):
        return True
    return isinstance(error.cause, NotLoaded | RankSilent | MemoryError | torch.OutOfMemoryError)


def own_error(error: RayError) -> Exception:
    """What the agent raised itself, if its callers know how to speak of it; else all that Ray
    knows, with the traceback of the other process."""
    error = _innermost(error)
    cause = error.cause if isinstance(error, RayTaskError) else None
    return cause if isinstance(cause, UserError | OSError | SafetensorError) else error


def likely_cause(error: RayError, seconds: float, key: str, *, node_alive: bool) -> str:
    """Why the agent is gone, as far as one can know.

    Args:
        seconds: that it was given.
        key: of the recipe that says so.
        node_alive: whether the node on which it was is still part of the cluster.
    """
    if not node_alive:
        return _NODE_GONE
    error = _innermost(error)
    if isinstance(error, GetTimeoutError):
        return (
            f"no answer within {seconds:g} s, and it was ended; it hung, or {key} is too little "
            "for it"
        )
    if isinstance(error, OutOfMemoryError) or "memory monitor" in str(error):
        return "the machine ran low on memory, and Ray ended the process"
    cause = error.cause if isinstance(error, RayTaskError) else None
    if isinstance(cause, MemoryError | torch.OutOfMemoryError):
        return f"out of memory ({first_line(cause)})"
    if isinstance(cause, RankSilent):
        return f"one of its ranks was gone or too late ({first_line(cause)})"
    if isinstance(cause, NotLoaded):
        return "its process had ended since the phase before, most often killed for lack of memory"
    if isinstance(error, RayActorError) and error.actor_init_failed:
        return f"its process could not start ({_last_line(error)})"
    for kind, words in _CAUSES:
        if isinstance(error, kind):
            return words
    return (
        f"Ray could not reach it ({type(error).__name__}); its logs there say more, below "
        "/tmp/ray/session_latest/logs unless TMPDIR is set"
    )


def _innermost(error: RayError) -> RayError:
    """An error of Ray's that another wraps: what a call needed was lost with somebody else."""
    while isinstance(error, RayTaskError) and isinstance(error.cause, RayError):
        error = error.cause
    return error


def _last_line(error: RayError) -> str:
    """The end of the traceback of another process, where its error is."""
    return str(error).strip().splitlines()[-1].strip().rstrip(".")

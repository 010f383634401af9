"""What to say of an agent that is gone: which, where, in which phase, and most likely why."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from ray.exceptions import GetTimeoutError, OutOfMemoryError, RayError, RayTaskError
from safetensors import SafetensorError

from hacrl.errors import UserError, first_line
from hacrl.fleet.worker import NotLoaded, Place, RankSilent

__all__ = ["Loss", "is_loss", "likely_cause", "own_error"]

_ABRUPT = (
    *("Socket closed", "Connection reset", "Connection refused", "was restarted"),
    "worker process has died",
)
"""How Ray speaks of a process that ended without a word."""


@dataclass(frozen=True, slots=True)
class Loss:
    """An agent that is gone. `place` is None if it was never anywhere, `rank` if it has but one or
    nobody knows which of them failed; then the place is that of the first."""

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
    if not isinstance(error, RayTaskError):
        return True
    return isinstance(error.cause, NotLoaded | RankSilent | MemoryError | torch.OutOfMemoryError)


def own_error(error: RayError) -> Exception:
    """What the agent raised itself, if its callers know how to speak of it; else all that Ray
    knows, with the traceback of the other process."""
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
        return "its node has left the cluster"
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
    if any(sign in str(error) for sign in _ABRUPT):
        return "its process ended at once, most often killed by the system for lack of memory"
    return first_line(error)

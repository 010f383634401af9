"""Where agents live, and what each takes of a cluster."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from hacrl.config.bounds import Seconds
from hacrl.config.strict import Strict

__all__ = ["FleetSpec", "Resources"]


Amount = Annotated[float, Field(ge=1e-4, le=1e6)]
"""Of a resource of a cluster; Ray counts in steps of 1/10,000."""


class FleetSpec(Strict):
    """Where the agents of a run live. `fleet: ray` is short for `fleet: {type: ray}`.

    All but `type` and `in_turns` is about Ray. Changes nothing learned, unless an agent is lost.
    """

    type: Literal["local", "ray"] = "local"
    """`local`: all in one process, one after another. `ray`: each in its own process, at the
    same time, on this machine or on a cluster."""
    in_turns: bool = False
    """Agents that share a device use it one after another; the weights and optimizers of those that
    wait are in host memory. For more agents than fit into the device at once."""
    address: str | None = None
    """Of a Ray cluster, as in `ray.init`; `auto` finds the one of this machine. None takes the
    environment's RAY_ADDRESS, or else starts Ray on this machine for the time of the run."""
    seconds: Seconds = 3600.0
    """Longest that an agent may take for one phase of a step, or for a checkpoint, before it
    counts as lost."""
    start_seconds: Seconds = 900.0
    """Longest that an agent may take to get its resources and to load its model."""
    retries: int = Field(default=3, ge=0, le=10**6)
    """How often a run goes on after an agent was lost; with `on_peer_failure: continue`, how often
    each agent is taken back."""
    on_peer_failure: Literal["restart", "continue"] = "restart"
    """When an agent is lost: `restart` it, and let all go back to the last joint checkpoint; or let
    the others `continue` without it and take it back, as it was then, when it is there again."""

    @model_validator(mode="before")
    @classmethod
    def _by_its_type(cls, value: Any) -> Any:
        return {"type": value} if isinstance(value, str) else value


class Resources(Strict):
    """What one agent takes of a Ray cluster; of no influence elsewhere. Changes nothing learned."""

    cpus: float = Field(default=1.0, ge=1e-4, le=1024.0)
    """Also the number of CPU threads, rounded down to 1 or more, unless `threads` says it."""
    gpus: float | None = Field(default=None, ge=0.0, le=1024.0)
    """Fractions share a GPU with other agents. None: one if the cluster has any, unless `device`
    is the CPU."""
    custom: dict[str, Amount] = Field(default_factory=dict)
    """Resources by names that the cluster declares."""
    node: dict[str, str] = Field(default_factory=dict)
    """Labels that the node must have, as in Ray's `label_selector`."""

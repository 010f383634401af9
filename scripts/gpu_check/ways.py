"""The ways in which the check trains, and which of them a machine can try."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["WAYS", "Way", "obstacle"]


@dataclass(frozen=True, slots=True)
class Way:
    """One run of the demo's two agents.

    Args:
        name: as the table calls it.
        changes: to the demo's recipe.
        exact: sampling and learning must agree to rounding in single precision.
        devices: GPUs that it needs.
        package: that it needs besides, None if nothing.
        here: whether the agents are in this process, where torch knows their memory.
        resumed: stop after the first step, and go on from its checkpoint.
    """

    name: str
    changes: Sequence[str] = ()
    exact: bool = True
    devices: int = 1
    package: str | None = None
    here: bool = True
    resumed: bool = False


_HALVES = (*("fleet=ray", "agents.ada.resources={gpus: 0.5}", "agents.bob.resources={gpus: 0.5}"),)
_VLLM = "{type: vllm, enforce_eager: true, gpu_memory_utilization: 0.2, max_model_len: 256}"

WAYS = (
    Way("single precision"),
    Way("bfloat16", ("update.autocast=bfloat16",), exact=False),
    Way("adapters", ("agents.ada.lora={rank: 8}", "agents.bob.lora={rank: 8}")),
    Way("KL and checkpointing", ("update.kl=0.01", "update.gradient_checkpointing=true")),
    Way("in turns", ("fleet.in_turns=true",)),
    Way("resumed", ("checkpoints.every=1",), resumed=True),
    Way("shared by Ray", _HALVES, here=False),
    Way(
        "two ranks",
        ("fleet=ray", "agents.ada.ranks=2", "agents.bob.ranks=2", "fleet.in_turns=true"),
        devices=2,
        here=False,
    ),
    Way(
        "vLLM, asleep while learning",
        (f"agents.ada.sampler={_VLLM}", f"agents.bob.sampler={_VLLM}"),
        exact=False,
        package="vllm",
    ),
)


def obstacle(way: Way, gpus: int | None) -> str | None:
    """Why this machine cannot try a way, None if it can.

    Args:
        gpus: that torch sees; None on a CPU, which takes the place of any number.
    """
    if gpus is not None and gpus < way.devices:
        return f"needs {way.devices} GPUs"
    if way.package is not None and importlib.util.find_spec(way.package) is None:
        return f"needs {way.package}"
    return None

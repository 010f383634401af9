"""The ways in which the check trains, and which of them a machine can try."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["WAYS", "Way", "obstacle", "overrides"]


@dataclass(frozen=True, slots=True)
class Way:
    """One run of the demo's recipe.

    Args:
        name: as the table calls it.
        changes: to the demo's recipe.
        exact: sampling and learning must agree to rounding in single precision.
        devices: GPUs that it needs.
        package: that it needs besides, None if nothing.
        here: whether the agents are in this process, where torch knows their memory.
        resumed: stop after the first step, and go on from its checkpoint.
        alone: with the first agent only, which has these keys besides.
    """

    name: str
    changes: Sequence[str] = ()
    exact: bool = True
    devices: int = 1
    package: str | None = None
    here: bool = True
    resumed: bool = False
    alone: str | None = None


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
        ("fleet=ray",),
        devices=2,
        here=False,
        alone="ranks: 2",
    ),
    Way(
        "vLLM, asleep while learning",
        (f"agents.ada.sampler={_VLLM}", f"agents.bob.sampler={_VLLM}"),
        exact=False,
        package="vllm",
    ),
)


def overrides(way: Way, device: str, steps: int) -> list[str]:
    """What a way changes in the demo's recipe, on a device and for so many steps."""
    ada = f"model: bundled:demo/assets/qwen3-char, device: '{device}'"
    agents = (
        [f"agents={{ada: {{{ada}, {way.alone}}}}}"]
        if way.alone
        else [f"agents.{name}.device={device}" for name in ("ada", "bob")]
    )
    changes = [
        text if device.startswith("cuda") else text.replace("gpus: 0.5", "gpus: 0")
        for text in way.changes
    ]
    return [*agents, "evaluation=null", f"steps={steps}", *changes]


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

"""Which settings of an agent's devices contradict each other, whatever the machine."""

from __future__ import annotations

from hacrl.config.agents import AgentSpec
from hacrl.config.fleet import FleetSpec
from hacrl.config.sampler import VllmSampling

__all__ = ["check_devices", "engine_devices"]


def engine_devices(spec: AgentSpec) -> int:
    """Devices that the inference engine of each rank is spread over; 0 without an engine."""
    return spec.sampler.tensor_parallel_size if isinstance(spec.sampler, VllmSampling) else 0


def check_devices(name: str, spec: AgentSpec, fleet: FleetSpec) -> None:
    """Refuse an agent that could not get its devices on any machine.

    Raises:
        ValueError: it could not. The message begins with the key.
    """
    device, gpus = f"agents.{name}.device", spec.resources.gpus
    kind, _, number = spec.device.partition(":")
    index = int(number) if number.isdecimal() else 0
    if index and engine_devices(spec):
        raise ValueError(
            f"{device}: an engine takes the first GPU that its process sees, not {spec.device}; "
            f"set {kind}, and choose the GPU with CUDA_VISIBLE_DEVICES or fleet: ray"
        )
    if fleet.type == "local":
        return
    if spec.ranks > 1 and gpus is not None and gpus % 1:
        raise ValueError(
            f"agents.{name}.resources.gpus: {gpus:g} for each of {spec.ranks} ranks, but ranks "
            "cannot share a GPU; set 1, or drop ranks"
        )
    if index and (spec.ranks > 1 or index >= (1 if gpus is None else gpus)):
        raise ValueError(
            f"{device}: on Ray a process sees its own GPUs alone, of which {spec.device} is none; "
            f"set {kind}"
        )
    if kind not in ("auto", "cpu") and gpus == 0:
        raise ValueError(
            f"{device}: {spec.device}, but agents.{name}.resources.gpus is 0; set 1, or device: cpu"
        )
    if gpus and engine_devices(spec) > max(1, gpus):
        raise ValueError(
            f"agents.{name}.sampler.tensor_parallel_size: {engine_devices(spec)} devices, but "
            f"agents.{name}.resources.gpus is {gpus:g}; set it to {engine_devices(spec)}"
        )

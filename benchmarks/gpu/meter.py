"""Seconds and peak memory of the phases of a step."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import torch

__all__ = ["Meter", "Phase"]


@dataclass(frozen=True, slots=True)
class Phase:
    """What a phase took.

    Args:
        seconds: of wall time.
        peak: most bytes held: on a GPU those of its allocator, on a CPU those of the process.
        tokens: new tokens that the step is about.
    """

    seconds: float
    peak: int
    tokens: int


class Meter:
    """Measures phases, one after another; each ends when the device has done its work.

    Args:
        on_gpu: whether the work is done on a GPU.
    """

    def __init__(self, *, on_gpu: bool) -> None:
        self._on_gpu = on_gpu
        self._current: tuple[str, float] | None = None
        self._taken: dict[str, tuple[float, int]] = {}

    def begin(self, name: str) -> None:
        """End the phase in progress, if there is one, and begin another."""
        self._close()
        if self._on_gpu:
            torch.cuda.reset_peak_memory_stats()
        else:
            Path("/proc/self/clear_refs").write_text("5", "ascii")  # resets the high-water mark
        self._current = name, time.perf_counter()

    def end(self, tokens: int) -> dict[str, Phase]:
        """End the phase in progress; all phases since the last call."""
        self._close()
        taken, self._taken = self._taken, {}
        return {name: Phase(seconds, peak, tokens) for name, (seconds, peak) in taken.items()}

    def _close(self) -> None:
        if self._current is None:
            return
        if self._on_gpu:
            torch.cuda.synchronize()
        name, begun = self._current
        peak = torch.cuda.max_memory_allocated() if self._on_gpu else _high_water()
        self._taken[name] = time.perf_counter() - begun, peak
        self._current = None


def _high_water() -> int:
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024

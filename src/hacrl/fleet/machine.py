"""What of a machine decides how sums are rounded, and so whether a run repeats bit for bit."""

from __future__ import annotations

import platform
from pathlib import Path

import torch

__all__ = ["machine"]

_CPUINFO = Path("/proc/cpuinfo")


def machine() -> dict[str, str]:
    """Of this process: the kind of processor, the instructions that torch chose for it, and the
    number of threads, since kernels add in an order that depends on each."""
    return {
        "processor": _processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": str(torch.get_num_threads()),
    }


def _processor() -> str:
    """Its name as the system has it; at least its architecture."""
    try:
        lines = _CPUINFO.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()

"""Where and with what something was measured."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["machine"]

PACKAGES = ("hacrl", "torch", "transformers", "trl", "accelerate", "tokenizers")


def machine() -> dict[str, Any]:
    """Processor, memory, versions, and how busy the machine was when asked."""
    return {
        "cpus": os.cpu_count(),
        "cpu": _processor(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "threads": 1,
        "load_average": round(os.getloadavg()[0], 2),
    }


def _processor() -> str:
    """The processor's name, empty if it does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")

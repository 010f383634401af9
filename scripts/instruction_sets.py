"""Run the numerical tests with every instruction set that can be chosen on this machine.

    python -m scripts.instruction_sets

torch, oneDNN and MKL look at the processor and cut their sums into vectors as wide as it has. By
their own variables they can be limited to narrower ones, and then compute as on an older processor.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
SETS = {
    "DEFAULT": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "MKL_CBWR": "COMPATIBLE",
    },
    "AVX2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
    "AVX512": {
        "ATEN_CPU_CAPABILITY": "avx512",
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
        "MKL_ENABLE_INSTRUCTIONS": "AVX512",
    },
}
"""From the narrowest to the widest, by the names that torch has for them."""

TESTS = [sys.executable, "-m", "pytest", "-m", "numerics and not slow"]
"""Without the files."""


def main() -> int:
    """Run the tests with one set after another, as many at a time as there are cores."""
    chosen = choosable(torch.backends.cpu.get_cpu_capability())
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        passed = list(threads.map(run, chosen))
    return 0 if all(passed) else 1


def choosable(native: str) -> list[str]:
    """The sets up to torch's choice here, which has the first one's name on other processors."""
    names = list(SETS)
    return names[: names.index(native) + 1] if native in names else names[:1]


def marked() -> list[str]:
    """Files with numerical tests: to import the others as well would take as long as these."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(file) for file in files if "mark.numerics" in file.read_text(encoding="utf-8")]


def run(name: str) -> bool:
    """Run the tests in a process of their own and show what they say; whether they passed."""
    begun = time.monotonic()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **SETS[name]}
    done = subprocess.run(
        [*TESTS, *marked()], env=environment, capture_output=True, text=True, check=False
    )
    shown = done.stdout.splitlines()[-1:] if done.returncode == 0 else [done.stdout, done.stderr]
    print(f"{name}, {time.monotonic() - begun:.0f} s:", *shown, sep="\n", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())

"""What bounds the remaining cost: rates of this machine against what a step achieves."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from torch.profiler import profile

from benchmarks.speed.with_hacrl import HacrlWork, Steps
from benchmarks.speed.work import Work, folder

__all__ = ["bounds"]

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")


def bounds(work: Work, scratch: Path) -> dict[str, Any]:
    """Rates of the machine, and where the time of sampling and of the update goes.

    A token costs 2 floating-point operations a parameter forward and 4 backward, attention aside.
    """
    steps = Steps(HacrlWork(work, {"a": folder(work, scratch)}))
    rollouts = steps.sample()
    steps.learn(rollouts)
    lengths = [rollout.length for rollout in rollouts["a"]]
    return {
        "case": work.name,
        "machine": {
            "matrix_products_gflops": {
                f"{rows} rows": round(_products(rows)) for rows in (1, 16, 64, 512)
            },
            "memory_gb_per_second": round(_copying(), 1),
        },
        "mean_response": round(statistics.mean(lengths), 1),
        "sampling": _shares(steps.sample),
        "update": _shares(lambda: steps.learn(rollouts)),
    }


def _shares(phase: Callable[[], object]) -> dict[str, float]:
    """Shares of a phase's time by kind of work, and the rate of its matrix products.

    `outside` is what is spent between operations: Python, dispatch, and the profiler's own part.
    """
    with profile(with_flops=True) as seen:
        begun = time.perf_counter()
        phase()
        wall = time.perf_counter() - begun
    spent = {"matrix_products": 0.0, "attention": 0.0, "elementwise_and_copies": 0.0}
    flops = 0
    for event in seen.key_averages():
        if not event.key.startswith("aten::"):
            continue
        name = event.key.removeprefix("aten::")
        if name in PRODUCTS:
            kind = "matrix_products"
            flops += event.flops
        else:
            kind = "attention" if "attention" in name else "elementwise_and_copies"
        spent[kind] += event.self_cpu_time_total / 1e6
    return {
        "seconds_profiled": round(wall, 3),
        **{kind: round(value / wall, 3) for kind, value in spent.items()},
        "outside": round(1 - sum(spent.values()) / wall, 3),
        "matrix_products_gflops": round(flops / spent["matrix_products"] / 1e9, 1),
    }


def _products(rows: int) -> float:
    """GFLOP/s of a product with a weight of 1,536 × 576, the shape of SmolLM2's layers."""
    left, weight = torch.randn(rows, 576), torch.randn(1536, 576)
    seconds = _median(lambda: functional.linear(left, weight), 200 if rows < 512 else 40)
    return 2 * left.numel() * len(weight) / seconds / 1e9


def _copying() -> float:
    source = torch.zeros(1 << 25)
    target = torch.empty_like(source)
    return 2 * 4 * source.numel() / _median(lambda: target.copy_(source), 10) / 1e9


def _median(act: Callable[[], object], repeats: int) -> float:
    act()
    taken = []
    for _ in range(repeats):
        begun = time.perf_counter()
        act()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)

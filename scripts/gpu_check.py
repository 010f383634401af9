"""Does training work on this machine's GPU? Under five minutes, with the bundled models.

    python -m scripts.gpu_check

Trains the two tiny models of the demo for a few steps in several ways, and says of each how long it
took, how much GPU memory it needed at most, and what was wrong:

- `single precision`: one GPU, agents in turn. The log-probabilities of sampling and of learning
  must agree, else every importance ratio is off.
- `bfloat16`: the same under autocast, log π_old recomputed by the learner.
- `adapters`: both with LoRA.
- `in turns`: the agent that waits is in host memory. The most memory needed should be less.
- `shared by Ray`: both agents on Ray at the same time, half of the GPU each.

`--device cpu` tries the script itself where there is no GPU, and proves nothing about one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from hacrl.config import load_recipe
from hacrl.config.bundled import find_recipe
from hacrl.runs.writing import read_lines
from hacrl.training.train import train

__all__ = ["WAYS", "complaints", "main"]

WAYS: Mapping[str, Sequence[str]] = {
    "single precision": (),
    "bfloat16": ("update.autocast=bfloat16",),
    "adapters": ("agents.ada.lora={rank: 8}", "agents.bob.lora={rank: 8}"),
    "in turns": ("fleet.in_turns=true",),
    "shared by Ray": (
        *("fleet=ray", "agents.ada.resources={gpus: 0.5}", "agents.bob.resources={gpus: 0.5}"),
    ),
}
_EXACT = 1e-4
"""Nats per token within which sampling and learning agree in single precision."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Check every way; the exit code is 1 if anything was wrong, 2 without a GPU."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--device", default="cuda")
    options.add_argument("--steps", type=int, default=3)
    chosen = options.parse_args(arguments)
    on_gpu = chosen.device.startswith("cuda")
    if on_gpu and not torch.cuda.is_available():
        print("no GPU is visible to torch here; nothing was checked")
        return 2
    if on_gpu:
        print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    wrong = 0
    for way, changes in WAYS.items():
        if not on_gpu:
            changes = [text.replace("gpus: 0.5", "gpus: 0") for text in changes]
        begun = time.perf_counter()
        rows = _rows(chosen.device, chosen.steps, changes)
        seconds = time.perf_counter() - begun
        found = complaints(rows, exact=way != "bfloat16")
        # Ray's agents are other processes, whose memory torch does not know here.
        known = on_gpu and way != "shared by Ray"
        memory = f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB" if known else "-"
        print(f"{way}: {'; '.join(found) or 'fine'} ({seconds:.0f} s, {memory})", flush=True)
        wrong += bool(found)
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
    return int(wrong > 0)


def complaints(rows: Sequence[Mapping[str, Any]], *, exact: bool) -> list[str]:
    """What is wrong with the metrics of a run.

    Args:
        exact: sampling and learning must agree to rounding in single precision.
    """
    found = []
    for row in rows:
        place = f"{row['agent']} in step {row['step']}"
        if row["skipped_updates"]:
            found.append(f"{place}: {row['skipped_updates']} updates were not finite")
        if row["unscored"]:
            found.append(f"{place}: {row['unscored']} responses were not scored")
        gap = row["logprob_gap"]
        if exact and gap is not None and gap > _EXACT:
            found.append(f"{place}: sampling and learning differ by {gap:.1e} nats per token")
    if not any(row["updates"] for row in rows):
        found.append("no update was made")
    return found


def _rows(device: str, steps: int, changes: Sequence[str]) -> list[dict[str, Any]]:
    """The metrics of a short run of the demo's recipe."""
    recipe = load_recipe(
        find_recipe("demo"),
        [
            *(f"agents.{name}.device={device}" for name in ("ada", "bob")),
            *("evaluation=null", f"steps={steps}", *changes),
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        run = train(recipe, Path(folder))
        return read_lines(run.path / "metrics.jsonl")


if __name__ == "__main__":
    sys.exit(main())

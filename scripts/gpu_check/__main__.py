"""Does training work on this machine's GPU? Some minutes, with the bundled models.

    python -m scripts.gpu_check

Trains the two tiny models of the demo for a few steps in several ways, and prints one table to
paste into a bug report: of each way whether anything was wrong, seconds of a step and of its
phases, the most GPU memory that was needed, and the largest gaps between the log-probabilities of
sampling and of learning, else every importance ratio is off. What is wrong is said below the table.

- `single precision`: one GPU, both agents on it.
- `bfloat16`: the same under autocast, log π_old recomputed by the learner.
- `adapters`: both with LoRA.
- `KL and checkpointing`: with a reference model, and activations that are computed again.
- `in turns`: the agent that waits is in host memory. The most memory needed should be less.
- `resumed`: ended after a step, and continued from its checkpoint.
- `shared by Ray`: both agents on Ray at the same time, half of the GPU each.
- `two ranks`: one agent spread over two GPUs, by NCCL.
- `vLLM, asleep while learning`: engines that free their memory whenever they do not sample.

`--device cpu` tries the script itself where there is no GPU, and proves nothing about one.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from rich.console import Console
from rich.table import Table

from hacrl.config import load_recipe
from hacrl.config.bundled import find_recipe
from hacrl.console.terminal import quieten_libraries
from hacrl.runs.writing import read_lines
from hacrl.training.train import train
from scripts.gpu_check.complaints import complaints
from scripts.gpu_check.ways import WAYS, Way, obstacle, overrides

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check every way; the exit code is 1 if anything was wrong, 2 without a GPU."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--device", default="cuda")
    options.add_argument("--steps", type=int, default=3)
    options.add_argument("--ways", nargs="+", choices=[way.name for way in WAYS])
    chosen = options.parse_args(arguments)
    on_gpu = chosen.device.startswith("cuda")
    if on_gpu and not torch.cuda.is_available():
        print("no GPU is visible to torch here; nothing was checked")
        return 2
    quieten_libraries()
    progress = Console(stderr=True)
    table = Table(title=_machine(on_gpu), title_justify="left")
    for column in ("way", "", "s/step", "sample", "learn", "GiB", "gap", "probe gap"):
        table.add_column(column, justify="left" if column in {"way", ""} else "right")
    wrong: list[str] = []
    for way in WAYS:
        if chosen.ways and way.name not in chosen.ways:
            continue
        if reason := obstacle(way, torch.cuda.device_count() if on_gpu else None):
            table.add_row(way.name, reason)
            continue
        progress.print(f"{way.name} …", highlight=False)
        rows, peak = _tried(way, chosen.device, chosen.steps, on_gpu=on_gpu)
        texts = complaints(rows, exact=way.exact)
        wrong += [f"{way.name}: {text}" for text in texts]
        table.add_row(way.name, "WRONG" if texts else "fine", *_figures(rows, peak))
    # As wide as it needs to be: it is to be pasted, and a terminal's width would cut it.
    Console(width=120, highlight=False).print(table, *wrong, sep="\n", markup=False)
    return int(bool(wrong))


def _machine(on_gpu: bool) -> str:
    device = torch.cuda.get_device_name() if on_gpu else platform.processor() or "CPU"
    count = f"{torch.cuda.device_count()} × " if on_gpu else ""
    return (
        f"{count}{device}, CUDA {torch.version.cuda or '-'}, torch {torch.__version__}, "
        f"transformers {transformers.__version__}, Python {platform.python_version()}"
    )


def _tried(
    way: Way, device: str, steps: int, *, on_gpu: bool
) -> tuple[list[dict[str, Any]], float | None]:
    """The metrics of a short run, and its peak of GPU memory in GiB if known."""
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    with tempfile.TemporaryDirectory() as folder:
        for number in (1, steps) if way.resumed else (steps,):
            recipe = load_recipe(find_recipe("demo"), overrides(way, device, number))
            run = train(recipe, Path(folder), resume=way.resumed)
        rows = read_lines(run.path / "metrics.jsonl")
    known = on_gpu and way.here
    return rows, torch.cuda.max_memory_allocated() / 2**30 if known else None


def _figures(rows: Sequence[Mapping[str, Any]], peak: float | None) -> list[str]:
    """Of the last step, which is past what every first one needs; gaps of all of them."""
    last = rows[-1]["seconds"]
    gaps = (
        [row[name] for row in rows if row.get(name) is not None]
        for name in ("logprob_gap", "probe_gap")
    )
    return [
        f"{sum(last.values()):.2f}",
        f"{last['sample']:.2f}",
        f"{last['learn']:.2f}",
        "-" if peak is None else f"{peak:.2f}",
        *(f"{max(values):.1e}" if values else "-" for values in gaps),
    ]


if __name__ == "__main__":
    sys.exit(main())

"""One agent against TRL's `GRPOTrainer` on the same GPU, step by step in turns.

    python -m benchmarks.gpu [--model FOLDER] [--rounds 5] [--device cuda]

Both sides answer the same prompts with the same number of new tokens, learn by GSPO from the same
rewards, keep weights in single precision and compute in bfloat16 under autocast. Of each phase of a
step: median seconds, new tokens per second, and the most memory that the process held. Without
`--model` a Qwen3 of 0.6 billion parameters with random weights is made, which hardly ever ends a
response. Under ten minutes. Prints a table, writes `benchmarks/results/gpu.json`. `--device cpu`
tries the script with a tiny model, in single precision, and says nothing about a GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

from benchmarks.gpu.meter import Phase
from benchmarks.gpu.sides import Job, serve_hacrl, serve_trl
from benchmarks.speed.machine import machine
from benchmarks.speed.turns import Side, running
from benchmarks.speed.work import Work, folder
from hacrl.paths import BUNDLED, resolve

RESULT = Path(__file__).parents[1] / "results" / "gpu.json"
ROWS_AT_ONCE = 16
"""Of a pass of TRL's."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the result file; 2 without a GPU."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--device", default="cuda")
    options.add_argument("--model", type=Path)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--out", type=Path, default=RESULT)
    chosen = options.parse_args(arguments)
    on_gpu = chosen.device.startswith("cuda")
    if on_gpu and not torch.cuda.is_available():
        sys.stderr.write("no GPU is visible to torch here; nothing was measured\n")
        return 2
    work = (
        Work("smollm", "equal", False, prompts=16, group_size=8, max_new_tokens=256)
        if on_gpu
        else Work("tiny", "equal", False, prompts=8, group_size=4, max_new_tokens=16)
    )
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        model = chosen.model or (_qwen3(place / "qwen3") if on_gpu else folder(work, place))
        phases = _measured(work, model, place, chosen.device, chosen.rounds)
    result = {
        "machine": machine() | ({"gpu": torch.cuda.get_device_name()} if on_gpu else {}),
        "work": f"{work.prompts} prompts × {work.group_size} × {work.max_new_tokens} new tokens",
        "phases": phases,
    }
    chosen.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    Console(width=100, highlight=False).print(_table(result))
    return 0


def _measured(
    work: Work, model: Path, scratch: Path, device: str, rounds: int
) -> dict[str, dict[str, dict[str, float]]]:
    """Of each side, of each phase: see `_summary`."""
    job = Job(work, model, device, scratch, ROWS_AT_ONCE)
    sides: dict[str, tuple[Callable[[Side, Any], None], Any]] = {
        "hacrl": (serve_hacrl, job),
        "TRL": (serve_trl, job),
    }
    turns: dict[str, list[Mapping[str, Phase]]] = {name: [] for name in sides}
    with running(sides) as wires:
        for number in range(rounds + 1):
            for name in list(sides) if number % 2 else list(sides)[::-1]:
                wires[name].send(torch.get_num_threads())
                phases = wires[name].recv().phases
                if number:  # the first warms up
                    turns[name].append(phases)
            sys.stderr.write(f"round {number} of {rounds}\n")
    return {name: _summary(own) for name, own in turns.items()}


def _summary(turns: Sequence[Mapping[str, Phase]]) -> dict[str, dict[str, float]]:
    """Of each phase: seconds, new tokens per second, and GiB."""
    summary = {}
    for name in turns[0]:
        phases = [turn[name] for turn in turns]
        seconds = statistics.median(phase.seconds for phase in phases)
        summary[name] = {
            "seconds": round(seconds, 4),
            "tokens_per_second": round(phases[-1].tokens / seconds, 1),
            "peak_gib": round(max(phase.peak for phase in phases) / 2**30, 3),
        }
    return summary


def _table(result: Mapping[str, Any]) -> Table:
    machine_ = result["machine"]
    table = Table(title=f"{machine_.get('gpu', 'CPU')}: {result['work']}", title_justify="left")
    for column in ("side", "phase", "seconds", "tokens/s", "GiB"):
        table.add_column(column, justify="left" if column in {"side", "phase"} else "right")
    for side, phases in result["phases"].items():
        for name, row in phases.items():
            table.add_row(
                side,
                name,
                f"{row['seconds']:.3f}",
                f"{row['tokens_per_second']:,.0f}",
                f"{row['peak_gib']:.2f}",
            )
    return table


def _qwen3(path: Path) -> Path:
    """Of the shape of Qwen3-0.6B, with the tokenizer of the demo, which uses few of its tokens."""
    tokenizer = AutoTokenizer.from_pretrained(resolve(f"{BUNDLED}demo/assets/qwen3-char"))
    torch.manual_seed(0)
    Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=151_936,
            hidden_size=1024,
            intermediate_size=3072,
            num_hidden_layers=28,
            num_attention_heads=16,
            num_key_value_heads=8,
            head_dim=128,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=None,
        )
    ).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


if __name__ == "__main__":
    sys.exit(main())

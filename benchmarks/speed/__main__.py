"""`python -m benchmarks.speed [parts]`: measure, keep each part's results, write `docs/speed.md`.

Parts are `a` to `e`, `g` and `bounds`; (f), peak memory, is read off (a) and (d). Each part is a
file of its own below `benchmarks/results/`, so that any can be measured again alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging

from benchmarks.speed import accuracy, pairs
from benchmarks.speed.bounds import bounds
from benchmarks.speed.controller import shares
from benchmarks.speed.machine import machine
from benchmarks.speed.report import write_report
from benchmarks.speed.work import SMOLLM, ModelName, Work

RESULTS = Path(__file__).parents[1] / "results"
REPORT = Path(__file__).parents[2] / "docs" / "speed.md"


def main() -> None:
    """Measure the parts asked for, all if none is named."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("parts", nargs="*", choices=[*_PARTS, []], default=[])
    options.add_argument("--models", nargs="+", default=["tiny", "smollm"])
    chosen = options.parse_args()
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    if "smollm" in chosen.models and not SMOLLM.is_dir():
        raise SystemExit(f"{SMOLLM} is missing: run `make real`, or pass MODELS=tiny")
    for part in chosen.parts or _PARTS:
        before = machine()
        with tempfile.TemporaryDirectory() as scratch:
            rows = _PARTS[part](chosen.models, Path(scratch))
        result = {"part": part, "machine": before, "results": rows}
        RESULTS.mkdir(exist_ok=True)
        text = json.dumps(result, indent=2, ensure_ascii=False)
        (RESULTS / f"speed_{part}.json").write_text(text + "\n", "utf-8")
        write_report(RESULTS, REPORT)


def _each(
    measure: Callable[[Work, Path], dict[str, Any]], silent: tuple[bool, ...] = (False, True)
) -> Callable[[list[ModelName], Path], list[dict[str, Any]]]:
    def run(models: list[ModelName], scratch: Path) -> list[dict[str, Any]]:
        found = []
        for work in pairs.cases(models, silent):
            found.append(measure(work, scratch))
            sys.stderr.write(json.dumps(found[-1], ensure_ascii=False) + "\n")
        return found

    return run


_PARTS: dict[str, Callable[[list[ModelName], Path], Any]] = {
    "a": _each(pairs.steps),
    "b": _each(pairs.sampling, (False,)),
    "c": _each(pairs.updates),
    "d": _each(pairs.two_agents, (False, True)),
    "e": lambda models, scratch: shares(scratch),
    "g": lambda models, scratch: accuracy.race(scratch),
    "bounds": _each(bounds, (False,)),
}

if __name__ == "__main__":
    main()

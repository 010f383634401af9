"""`python -m benchmarks.speed [parts]`: measure, keep each part's results, write `docs/speed.md`.

Parts are `a` to `e`, `d2`, `g` and `bounds`; (f), peak memory, is read off (a) and (d). Each part
is a file of its own below `benchmarks/results/`, so that any can be measured again alone.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results"
REPORT = Path(__file__).parents[2] / "docs" / "speed.md"


def main() -> None:
    """Measure the parts asked for, all if none is named."""
    # Every side's process imports this module; what it does not need would count as its memory.
    import torch
    from transformers.utils import logging

    from benchmarks.speed.machine import machine
    from benchmarks.speed.parts import PARTS
    from benchmarks.speed.report import write_report
    from benchmarks.speed.work import SMOLLM

    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    options.add_argument("--models", nargs="+", default=["tiny", "smollm"])
    chosen = options.parse_args()
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    if "smollm" in chosen.models and not SMOLLM.is_dir():
        raise SystemExit(f"{SMOLLM} is missing: run `make real`, or pass MODELS=tiny")
    for part in chosen.parts or PARTS:
        before = machine()
        with tempfile.TemporaryDirectory() as scratch:
            rows = PARTS[part](chosen.models, Path(scratch))
        result = {"part": part, "machine": before, "results": rows}
        RESULTS.mkdir(exist_ok=True)
        text = json.dumps(result, indent=2, ensure_ascii=False)
        (RESULTS / f"speed_{part}.json").write_text(text + "\n", "utf-8")
        write_report(RESULTS, REPORT)


if __name__ == "__main__":
    main()

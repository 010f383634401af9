r"""Verdicts per second on the GSM8K test set: the pool against math-verify in a plain loop.

Three kinds of responses, all right:

- `solutions`: the reference solution and `\boxed{18}`, as a model would write it. The pool decides
  plain numbers without its workers.
- `fractions`: the reference solution and `\boxed{\frac{36}{2}}`, a different fraction in every row,
  so that every row goes to a worker.
- `boxes`: that box and nothing else, which leaves the loop the least to read.

In every round each way takes its turn; the order changes from round to round. Workers are started
beforehand, as they are in a run after its first step; what that takes is reported.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path

from math_verify import parse, verify

from hacrl.records import Outcome, Prompt
from hacrl.verify import Math, VerifierPool

Rows = list[tuple[Prompt, str]]

WORKERS = (1, 2)
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "gsm8k" / "test.jsonl"
RESULT = Path(__file__).with_name("results") / "verifier_throughput.json"


def main() -> None:
    """Measure, print a table, and write the result file."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path, default=DATA)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--out", type=Path, default=RESULT)
    chosen = options.parse_args()
    problems = [json.loads(line) for line in chosen.data.read_text("utf-8").splitlines()]
    load = os.getloadavg()[0]
    starts: dict[str, float] = {}
    with ExitStack() as stack:
        ways: dict[str, Callable[[Rows], int]] = {"loop": by_loop}
        for workers in WORKERS:
            pool = stack.enter_context(VerifierPool({"gsm8k": Math()}, workers))
            begun = time.perf_counter()
            by_pool(pool, kinds(problems[: 64 * workers])["boxes"])
            starts[f"pool_{workers}"] = time.perf_counter() - begun
            ways[f"pool_{workers}"] = partial(by_pool, pool)
        speeds = {
            kind: measure(ways, rows, chosen.rounds) for kind, rows in kinds(problems).items()
        }
    result = {
        "machine": {"cpus": os.cpu_count(), "cpu": cpu(), "system": platform.system()},
        "load_average_before": round(load, 2),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("hacrl", "math-verify", "sympy")},
        },
        "rows": len(problems),
        "rounds": chosen.rounds,
        "start_seconds": {name: round(value, 2) for name, value in starts.items()},
        "verdicts_per_second": {
            kind: {name: round(statistics.median(own), 1) for name, own in found.items()}
            for kind, found in speeds.items()
        },
        "ratio_to_loop": {
            kind: {name: ratios(found, name) for name in found if name != "loop"}
            for kind, found in speeds.items()
        },
    }
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


def kinds(problems: list[dict[str, str]]) -> dict[str, Rows]:
    """Responses of each kind, with their prompts."""
    found: dict[str, Rows] = {"solutions": [], "fractions": [], "boxes": []}
    for number, problem in enumerate(problems):
        solution, _, gold = problem["answer"].partition("####")
        value = int(gold.strip().replace(",", ""))
        factor = number + 2
        box = rf"\boxed{{\frac{{{value * factor}}}{{{factor}}}}}"
        prompt = Prompt(f"gsm8k/{number}", "gsm8k", problem["question"], problem["answer"])
        found["solutions"].append((prompt, rf"{solution}The answer is \boxed{{{gold.strip()}}}."))
        found["fractions"].append((prompt, f"{solution}The answer is {box}."))
        found["boxes"].append((prompt, box))
    return found


def by_loop(rows: Rows) -> int:
    """What people write: parse the gold, parse the response, compare."""
    return sum(
        verify(parse(prompt.gold.rpartition("####")[2].strip()), parse(response))
        for prompt, response in rows
    )


def by_pool(pool: VerifierPool, rows: Rows) -> int:
    """How many are right."""
    return sum(verdict.outcome is Outcome.RIGHT for verdict in pool.verify(rows))


def measure(
    ways: Mapping[str, Callable[[Rows], int]], rows: Rows, rounds: int
) -> dict[str, list[float]]:
    """Verdicts per second of each way in each round."""
    speeds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        order = list(ways) if number % 2 else list(ways)[::-1]
        for name in order:
            begun = time.perf_counter()
            right = ways[name](rows)
            seconds = time.perf_counter() - begun
            if name != "loop" and right != len(rows):
                raise SystemExit(f"{name} finds {right} of {len(rows)} right answers right")
            if number:  # the first round warms up
                speeds[name].append(len(rows) / seconds)
    return speeds


def ratios(speeds: Mapping[str, list[float]], name: str) -> dict[str, float]:
    """Median, least and largest of a way's speed over the loop's, round by round."""
    pairs = zip(speeds[name], speeds["loop"], strict=True)
    found = [own / loop for own, loop in pairs]
    return {
        "median": round(statistics.median(found), 3),
        "min": round(min(found), 3),
        "max": round(max(found), 3),
    }


def cpu() -> str:
    """The processor's name, empty if it does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")


if __name__ == "__main__":
    main()

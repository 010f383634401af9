"""Kill -9 a run again and again; after every kill the resumed run must end bit-identical.

    python -m scripts.crash_test --kills 50

Half of the kills come at a moment drawn from the whole length of a run, loading included; the
others while a checkpoint, or the agents at the end of the run, are being written. Now and then the
resumed run is killed as well.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from hacrl.config import Recipe
from hacrl.console.terminal import quieten_libraries
from scripts.crash_test.comparing import differences
from scripts.crash_test.victims import make_recipe, start

STEPS = 5
_SAVING = 0.03
"""Seconds after the beginning of a save within which it is killed."""
_AGAIN = 0.3
"""Share of the resumed runs that are killed as well."""


def main() -> int:
    """Run the test; 1 if a run came out differently."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.crash_test", description="Kill runs and compare what they become."
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0, help="decides the moments")
    options = parser.parse_args()
    quieten_libraries()
    with tempfile.TemporaryDirectory() as folder:
        found = crash(Path(folder), options.kills, options.seed, tell=print)
    for line in found.lines():
        print(line)
    return 0 if found.identical == found.runs else 1


class Tally:
    """How often runs were killed where, and what became of them."""

    def __init__(self) -> None:
        self.places: Counter[str] = Counter()
        self.runs = 0
        self.identical = 0
        self.wrong: list[str] = []

    @property
    def kills(self) -> int:
        return sum(self.places.values())

    def lines(self) -> list[str]:
        """In words."""
        return [
            f"{self.kills} kills in {self.runs} runs; {self.identical} ended bit-identical to the "
            "undisturbed run",
            *(f"  {count:3d} killed {place}" for place, count in self.places.most_common()),
            *(f"  WRONG {text}" for text in self.wrong),
        ]


def crash(
    folder: Path, kills: int, seed: int, tell: Callable[[str], None] = lambda text: None
) -> Tally:
    """Kill runs below a folder until there have been so many kills.

    Args:
        tell: called with a line about every run.
    """
    recipe, draw, tally = make_recipe(STEPS), random.Random(seed), Tally()
    _finish(start(recipe, folder / "warm-up"))  # the server has to start as well
    began = time.monotonic()
    _finish(start(recipe, folder / "undisturbed"))
    length = time.monotonic() - began
    while tally.kills < kills:
        root = folder / f"run-{tally.runs}"
        _kill(recipe, root, draw, length, tally)
        while tally.kills < kills and draw.random() < _AGAIN:
            _kill(recipe, root, draw, length, tally)
        _finish(start(recipe, root))
        tally.runs += 1
        wrong = differences(root / recipe.name, folder / "undisturbed" / recipe.name)
        tally.identical += not wrong
        if wrong:
            tally.wrong.append(f"run {tally.runs}: {', '.join(wrong)}")
        outcome = "differs" if wrong else "identical"
        tell(f"run {tally.runs}: {outcome}, {tally.kills}/{kills} kills so far")
        shutil.rmtree(root)
    return tally


def _kill(recipe: Recipe, root: Path, draw: random.Random, length: float, tally: Tally) -> None:
    """Start or resume a run and kill it, unless it ends before."""
    run = root / recipe.name
    process = start(recipe, root)
    if draw.random() < 0.5:
        _wait(process, lambda: False, draw.uniform(0, length))
    else:
        number = draw.randint(1, STEPS + 1)
        final = number > STEPS
        part = run / "agents.part" if final else run / "checkpoints" / f"step-{number:06d}.part"
        _wait(process, part.exists, 10 * length)
        time.sleep(draw.uniform(0, _SAVING))
    ended = process.exitcode is not None
    process.kill()
    process.join()
    if not ended:
        tally.places[_place(run)] += 1


def _place(run: Path) -> str:
    if not (run / "state.json").exists():
        return "before there was a run folder"
    if list(run.glob("checkpoints/*.part")):
        return "inside the saving of a checkpoint"
    if (run / "agents.part").exists():
        return "inside the saving of the agents"
    if not list(run.glob("checkpoints/step-*")):
        return "before the first checkpoint"
    return "between two checkpoints"


def _wait(process: ForkServerProcess, until: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while process.is_alive() and not until() and time.monotonic() < end:
        os.sched_yield()


def _finish(process: ForkServerProcess) -> None:
    process.join()
    if process.exitcode != 0:
        raise SystemExit(f"a run that was not killed ended with code {process.exitcode}")


if __name__ == "__main__":
    sys.exit(main())

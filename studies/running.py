"""Doing the runs that are missing, on all cores, one thread each."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console

from hacrl.config import Recipe, recipe_to_yaml
from hacrl.console.progress import duration
from hacrl.console.terminal import quieten_libraries, say

__all__ = ["finished", "run_all"]


def finished(recipe: Recipe, root: Path) -> bool:
    """Whether this very recipe has a run below `root` that has ended well."""
    state, stored = root / recipe.name / "state.json", root / recipe.name / "recipe.yaml"
    return (
        state.is_file()
        and json.loads(state.read_text(encoding="utf-8"))["state"] == "finished"
        and stored.read_text(encoding="utf-8") == recipe_to_yaml(recipe)
    )


def run_all(recipes: Sequence[Recipe], root: Path, jobs: int, console: Console) -> None:
    """Run every recipe whose run below `root` is not finished, a line for each that ends.

    What an interruption leaves unfinished begins anew the next time; finished runs stay.

    Raises:
        UserError: of a run; the others that have begun end first.
    """
    missing = [recipe for recipe in recipes if not finished(recipe, root)]
    say(console, f"{len(recipes)} runs, {len(recipes) - len(missing)} of them are there already")
    started = time.monotonic()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as executor:
        running: dict[Future[float], Recipe] = {
            executor.submit(_run, recipe, root): recipe for recipe in missing
        }
        try:
            for done, future in enumerate(as_completed(running), 1):
                seconds = future.result()
                spent = time.monotonic() - started
                left = spent / done * (len(missing) - done)
                say(
                    console,
                    f"{done}/{len(missing)} {running[future].name} in {duration(seconds)}, "
                    f"at most about {duration(left)} left",
                )
        except BaseException:
            executor.shutdown(cancel_futures=True)
            raise


def _run(recipe: Recipe, root: Path) -> float:
    """Run one recipe; the seconds that it took."""
    quieten_libraries()
    from hacrl.training.train import train  # imports transformers, which has to be quiet by then

    started = time.monotonic()
    train(recipe, root, overwrite=True)
    return time.monotonic() - started

"""`hacrl demo`: the same two models co-trained by HACPO and, for comparison, each alone by GSPO."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from hacrl.config import Recipe, load_recipe
from hacrl.console.terminal import is_live, say
from hacrl.demo.process import begin
from hacrl.errors import UserError
from hacrl.evaluation.estimators import normal
from hacrl.evaluation.held_out import answer_all
from hacrl.fleet import LocalFleet
from hacrl.paths import BUNDLED, resolve
from hacrl.report.learning import learning
from hacrl.report.reading import read_runs
from hacrl.report.series import Group
from hacrl.tasks import load_task
from hacrl.training.train import train
from hacrl.verify import make_pool

__all__ = ["run_demo"]

METHODS = ("gspo", "hacpo")
HELDOUT = f"{BUNDLED}demo/assets/heldout.jsonl"
SAMPLES = 8
"""Sampled answers per held-out problem."""

Accuracies = Mapping[str, Sequence[float]]
"""By agent: the share of right answers to each held-out problem."""


def run_demo(
    root: Path,
    seed: int,
    console: Console,
    *,
    overrides: Sequence[str] = (),
) -> list[Path]:
    """Train both ways, compare on held-out problems, print a table and draw the curves.

    Both runs start from the same weights and sample the same number of rollouts per agent. They
    run side by side, one thread each. Everything ends up below `root/demo`.

    Args:
        overrides: of the recipe, for a smaller demo.

    Returns:
        The folders of both runs.
    """
    folder = root / "demo"
    recipes = {
        method: load_recipe(
            resolve(f"{BUNDLED}recipes/demo.yaml"),
            [f"method={method}", f"name={method}", f"seed={seed}", *overrides],
        )
        for method in METHODS
    }
    recipe = recipes["hacpo"]
    console.print(
        f"Two tiny language models of different families, {' and '.join(recipe.agents)}, learn "
        f"arithmetic.\nGSPO: each alone. HACPO: from each other.\n"
        f"{recipe.steps} steps of {recipe.prompts_per_step} problems × "
        f"{recipe.group_size} answers; seed {seed}."
    )
    for method in METHODS:  # else its progress would show the last demo's
        shutil.rmtree(folder / method, ignore_errors=True)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(METHODS), context, initializer=begin) as workers:
        training = {
            method: workers.submit(_train_and_evaluate, recipes[method], folder)
            for method in METHODS
        }
        start = workers.submit(_evaluate_start, recipe)
        _follow(training, folder, recipe, console)
        try:
            results = {method: future.result() for method, future in training.items()}
            before = start.result()
        except BrokenProcessPool as error:
            raise UserError(
                "demo: one of its two processes was killed, most likely because memory ran out; "
                "free about 1.5 GB and try again"
            ) from error
    say(console, "Accuracy on held-out problems (95% interval over problems)")
    console.print(_table(before, results))
    curves = folder / "curves.png"
    folders = [folder / method for method in METHODS]
    groups = [Group(run.label.upper(), (run,)) for run in read_runs(folders)]
    if chart := learning(groups):
        chart.save(curves)
    (folder / "results.json").write_text(
        json.dumps({"seed": seed, "before": before, **results}), encoding="utf-8"
    )
    say(console, f"Learning curves: {curves}")
    for path in folders:
        say(console, f"{path.name.upper()}: {path}")
    return folders


def _train_and_evaluate(recipe: Recipe, folder: Path) -> Accuracies:
    """Train, then evaluate what was saved: agents as anybody would load them."""
    run = train(recipe, folder, overwrite=True)
    agents = {
        name: spec.model_copy(update={"model": str(run.agents[name])})
        for name, spec in recipe.learners.items()
    }
    return _evaluate_start(recipe.model_copy(update={"agents": agents}))


def _evaluate_start(recipe: Recipe) -> Accuracies:
    """Accuracy of the learners as the recipe names them."""
    ((name, task),) = recipe.tasks.items()
    source = task.source.model_copy(update={"path": HELDOUT})
    prompts = load_task(name, task.model_copy(update={"source": source}))
    fleet = LocalFleet.from_recipe(recipe)
    with make_pool(recipe.tasks, recipe.verification) as verifiers:
        answers = answer_all(fleet, prompts, verifiers, samples=SAMPLES, occasion="heldout")
    return {
        agent: [
            sum(answer.right for answer in own[i : i + SAMPLES]) / SAMPLES
            for i in range(0, len(own), SAMPLES)
        ]
        for agent, own in answers.items()
    }


def _follow(
    training: Mapping[str, Future[Accuracies]], folder: Path, recipe: Recipe, console: Console
) -> None:
    """Show how far both runs are, from the metrics that they write."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps, {task.fields[news]}"),
        TimeRemainingColumn(),
    )
    shown = dict.fromkeys(training, -1)
    live = is_live(console)
    with Progress(*columns, console=console, disable=not live) as progress:
        bars = {m: progress.add_task(m.upper(), total=recipe.steps, news="") for m in training}
        while not all(future.done() for future in training.values()):
            time.sleep(0.5)
            for method, bar in bars.items():
                rows = _complete_rows(folder / method / "metrics.jsonl")
                done = len(rows) // len(recipe.agents)
                latest = rows[(done - 1) * len(recipe.agents) : done * len(recipe.agents)]
                news = "reward " + "  ".join(f"{r['agent']} {_number(r['reward'])}" for r in latest)
                if live:
                    before = "starting" if not done else ""
                    after = "evaluating" if done == recipe.steps else ""
                    progress.update(bar, completed=done, news=before or after or news)
                elif done // 10 > shown[method] and done:
                    shown[method] = done // 10
                    say(console, f"{method.upper()} step {done}/{recipe.steps}: {news}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _complete_rows(metrics: Path) -> list[dict[str, Any]]:
    """Rows of a file that another process is appending to."""
    if not metrics.is_file():
        return []
    text = metrics.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def _table(before: Accuracies, results: Mapping[str, Accuracies]) -> Table:
    table = Table()
    table.add_column("agent")
    for column in ("before", "GSPO", "HACPO", "HACPO − GSPO"):
        table.add_column(column, justify="right")
    for agent, start in before.items():
        gspo, hacpo = results["gspo"][agent], results["hacpo"][agent]
        gain = normal([a - b for a, b in zip(hacpo, gspo, strict=True)])
        cells = [normal(values) for values in (start, gspo, hacpo)]
        table.add_row(
            agent,
            *(f"{cell.value:.3f} ± {cell.half_width:.3f}" for cell in cells),
            f"{gain.value:+.3f} ± {gain.half_width:.3f}",
        )
    return table

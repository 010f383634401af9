"""From a recipe to trained agents: what surrounds the loop."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

from hacrl.capability import CapabilityTracker
from hacrl.config import Recipe
from hacrl.config.cautions import cautions
from hacrl.errors import UserError
from hacrl.evaluation.held_out import HeldOut, held_out_jobs
from hacrl.fleet import Fleet, LocalFleet
from hacrl.loop import StepResult, co_train
from hacrl.phases import Interrupted, Phases, finish_phase_on_interrupt
from hacrl.records import Prompt
from hacrl.runs.advice import Advisor
from hacrl.runs.folder import RunFolder
from hacrl.runs.metrics import step_metrics
from hacrl.tasks import PromptStream, load_prompts
from hacrl.tasks.fitting import fitting, prompt_limit
from hacrl.verify import VerifierPool, make_pool

__all__ = ["Observer", "Silent", "fitting_prompts", "train"]


class Observer(Protocol):
    """Is told how a run goes; see `hacrl.progress` for what people see."""

    def note(self, text: str) -> None:
        """One line worth reading."""

    def phase(self, name: str, step: int) -> None:
        """A phase of a step begins."""

    def step(self, metrics: Sequence[Mapping[str, Any]], seconds_left: float) -> None:
        """A step is complete; metrics per agent as in `metrics.jsonl`."""


class Silent:
    """An observer that says nothing."""

    def note(self, text: str) -> None: ...

    def phase(self, name: str, step: int) -> None: ...

    def step(self, metrics: Sequence[Mapping[str, Any]], seconds_left: float) -> None: ...


def train(
    recipe: Recipe, root: Path, observer: Observer | None = None, *, overwrite: bool = False
) -> RunFolder:
    """Run a recipe; the run folder is `root/<recipe.name>`.

    Everything that can be wrong with the recipe, the data or the models is found before the folder
    is made. The run repeats bit for bit on a CPU with the same number of threads.

    Raises:
        UserError: something that the user can mend.
        Interrupted: Ctrl-C, after the phase in progress; the agents as they are have been saved.
    """
    observer = observer or Silent()
    RunFolder.check_free(root, recipe, overwrite=overwrite)
    if recipe.threads is not None:
        torch.set_num_threads(recipe.threads)
    prompts = load_prompts(recipe.tasks)
    verifiers = make_pool(recipe.tasks, recipe.verification)
    jobs = held_out_jobs(recipe)
    for text in cautions(recipe):
        observer.note(text)
    observer.note(f"{len(prompts)} prompts; loading {', '.join(recipe.agents)}")
    fleet = LocalFleet.from_recipe(recipe)
    gc.freeze()  # models and libraries stay; the collector need not walk over them in every step
    fitting = fitting_prompts(recipe, fleet, prompts, observer)
    held_out = HeldOut(recipe, jobs, fleet, observer.note, observer.phase)
    run = RunFolder.create(root, recipe, overwrite=overwrite)
    stopped: Interrupted | UserError | None = None
    try:
        with held_out, finish_phase_on_interrupt() as stop:
            try:
                phases = Phases(observer.phase, stop)
                _run(recipe, fleet, fitting, verifiers, run, observer, phases, held_out)
            except (Interrupted, UserError) as error:
                stopped = error  # the agents as they are by now are worth keeping
        run.add_agents(fleet.save)
    except BaseException:
        run.set_state("failed")
        raise
    if stopped is None:
        run.set_state("finished")
        return run
    run.set_state("interrupted" if isinstance(stopped, Interrupted) else "failed")
    raise stopped


def _run(
    recipe: Recipe,
    fleet: Fleet,
    prompts: Sequence[Prompt],
    verifiers: VerifierPool,
    run: RunFolder,
    observer: Observer,
    phases: Phases,
    held_out: HeldOut,
) -> None:
    advisor = Advisor()
    started = time.perf_counter()

    def record(result: StepResult) -> None:
        run.add_rollouts(result.pool)
        run.add_lessons(result.pool.step, (le for r in result.reports for le in r.lessons))
        metrics = step_metrics(result, tuple(recipe.tasks))
        run.add_metrics(metrics)
        done = result.pool.step + 1
        per_step = (time.perf_counter() - started) / done
        observer.step(metrics, per_step * (recipe.steps - done))
        for text in advisor.advise(metrics):
            observer.note(text)

    with verifiers:
        co_train(
            fleet,
            PromptStream(
                prompts,
                recipe.prompts_per_step,
                recipe.seed,
                {name: task.weight for name, task in recipe.tasks.items()},
            ),
            verifiers,
            CapabilityTracker(
                fleet.agents,
                recipe.capability.window,
                recipe.capability.metric,
                recipe.capability.max_ratio,
            ),
            steps=recipe.steps,
            group_size=recipe.group_size,
            phases=phases,
            record=record,
            evaluate=lambda completed: held_out.after(completed, run.path),
        )


def fitting_prompts(
    recipe: Recipe, fleet: Fleet, prompts: Sequence[Prompt], observer: Observer
) -> list[Prompt]:
    """Prompts that are short enough for every agent under its own template.

    Raises:
        UserError: some are too long and the policy is to refuse, or none remain.
    """
    limits = {
        name: prompt_limit(recipe.prompts, recipe.sampling.max_new_tokens, positions)
        for name, positions in fleet.positions().items()
    }
    kept, note = fitting(recipe.prompts, prompts, fleet.prompt_lengths(prompts), limits)
    if note:
        observer.note(note)
    return kept

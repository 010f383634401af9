"""From a recipe to trained agents: what surrounds the loop."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import torch

from hacrl.agents.learning.algorithm import recipe_algorithm
from hacrl.agents.recording import check_recordings
from hacrl.algorithm.capability import CapabilityTracker
from hacrl.config import Recipe
from hacrl.config.cautions import cautions
from hacrl.console.observer import Observer, Silent
from hacrl.errors import NotFinite, UserError
from hacrl.evaluation.held_out import HeldOut, held_out_jobs
from hacrl.fleet import AgentLost, Fleet, open_fleet
from hacrl.phases import Interrupted, Phases, finish_phase_on_interrupt
from hacrl.records import Prompt
from hacrl.runs.clock import run_clock
from hacrl.runs.folder import RunFolder, State
from hacrl.runs.lock import only_process
from hacrl.runs.run import Run
from hacrl.runs.writing import explain_disk
from hacrl.tasks import PromptStream, load_prompts
from hacrl.tasks.fingerprint import fingerprint
from hacrl.tasks.fitting import fitting, prompt_limit
from hacrl.training.capacity import check_processes
from hacrl.training.loggers import Loggers, check_loggers
from hacrl.training.loop import co_train
from hacrl.training.named_files import file_marks
from hacrl.training.recorder import Recorder
from hacrl.training.resuming import check_data, find_checkpoint, note_machines
from hacrl.training.saver import Saver
from hacrl.verify import make_pool

__all__ = ["fitting_prompts", "train"]


def train(
    recipe: Recipe,
    root: Path | str,
    observer: Observer | None = None,
    *,
    overwrite: bool = False,
    resume: bool = False,
    accept_changes: bool = False,
) -> Run:
    """Run a recipe; the run folder is `root/<recipe.name>`.

    Everything that can be wrong with the recipe, the data or the models is found before the folder
    is made. The run repeats bit for bit on a CPU of the same kind with the same number of threads
    and the same versions, however often it is stopped and resumed. When the fleet loses an agent,
    the run goes on from its newest joint checkpoint, as often as `fleet.retries` says.

    Args:
        overwrite: replace a run of the same name.
        resume: go on from its newest complete checkpoint; begin if there is none yet.
        accept_changes: resume although the recipe or the data differ from the checkpoint's.

    Raises:
        UserError: something that the user can correct.
        Interrupted: Ctrl-C or SIGTERM, after the phase in progress; the agents as they are have
            been saved, and can go on from there.
    """
    root, observer = Path(root), observer or Silent()
    check_processes(recipe)
    left = recipe.fleet.retries
    clock = run_clock(recipe, root / recipe.name, resume=resume)
    loaded = recipe.model_copy(update={"clock": clock})
    with (
        only_process(root, recipe.name),
        open_fleet(loaded, root / recipe.name, observer.note) as start_fleet,
    ):
        while True:
            try:
                folder = _attempt(
                    recipe,
                    root,
                    observer,
                    start_fleet,
                    clock,
                    overwrite=overwrite,
                    resume=resume,
                    accept_changes=accept_changes,
                )
                return Run(folder.path)
            except AgentLost as lost:
                if left == 0:
                    raise UserError(
                        f"{lost}\nIt was the last of fleet.retries; correct it, and --resume goes "
                        "on from the newest checkpoint"
                    ) from lost
                left -= 1
                observer.note(f"{lost}; going on from the newest checkpoint")
                overwrite, resume = False, True


def _attempt(
    recipe: Recipe,
    root: Path,
    observer: Observer,
    start_fleet: Callable[[Path | None], Fleet],
    clock: datetime,
    *,
    overwrite: bool,
    resume: bool,
    accept_changes: bool,
) -> RunFolder:
    """Run a recipe until it ends or an agent is lost. See `train`.

    Raises:
        AgentLost: once the run folder is made.
    """
    checkpoint = None
    if resume:
        checkpoint = find_checkpoint(
            root / recipe.name, recipe, accept_changes=accept_changes, note=observer.note
        )
    else:
        RunFolder.check_free(root, recipe, overwrite=overwrite)
    check_loggers(recipe.loggers)
    if recipe.threads is not None:
        torch.set_num_threads(recipe.threads)
    prompts = load_prompts(recipe.tasks)
    data = {task: fingerprint(p for p in prompts if p.task == task) for task in recipe.tasks}
    progress = checkpoint.progress() if checkpoint else None
    verifiers = make_pool(recipe.tasks, recipe.verification)
    algorithm = recipe_algorithm(recipe)
    files = file_marks(recipe)
    if checkpoint and progress:
        check_data(
            checkpoint, progress, data, files, accept_changes=accept_changes, note=observer.note
        )
    check_recordings(recipe, prompts, root / recipe.name)
    jobs = held_out_jobs(recipe)
    for text in cautions(recipe):
        observer.note(text)
    observer.note(f"{len(prompts)} prompts; loading {', '.join(recipe.agents)}")
    fleet = start_fleet(checkpoint.agents if checkpoint else None)
    fitting = fitting_prompts(recipe, fleet, prompts, observer)
    for reading in fleet.read(fitting).values():
        for text in (*reading.notes, *reading.warnings):
            observer.note(text)
    held_out = HeldOut(recipe, jobs, fleet, observer.note, observer.phase)
    capability = CapabilityTracker(
        fleet.agents,
        recipe.capability.window,
        recipe.capability.metric,
        recipe.capability.max_ratio,
    )
    if checkpoint and progress:
        capability.restore(progress.capability)
        note_machines(progress.machines, fleet.machines(), observer.note)
        run = RunFolder.resume(root, recipe, progress, fleet.machines(), clock)
    else:
        run = RunFolder.create(
            root, recipe, overwrite=overwrite or resume, machines=fleet.machines(), clock=clock
        )
    start = progress.completed if progress else 0
    weights = {name: task.weight for name, task in recipe.tasks.items()}
    stream = PromptStream(fitting, recipe.prompts_per_step, recipe.seed, weights)
    loggers = Loggers(recipe, run.path, observer.note, start)
    recorder = Recorder(recipe, run, observer, loggers, start)

    def evaluate(completed: int) -> None:
        with explain_disk(run.path):
            recorder.evaluation(held_out.after(completed, run.path))

    with (
        _models_uncollected(),
        held_out,
        verifiers,
        loggers,
        finish_phase_on_interrupt() as stop,
        Saver(recipe, run, fleet.checkpoint, data, files, start) as saver,
    ):

        def begin(phase: str, step: int) -> None:
            if phase == "learn":
                saver.leave()
            observer.phase(phase, step)

        phases = Phases(begin, stop)
        with _kept_whatever_happens(run, fleet, saver, observer, phases):
            if start == 0:
                evaluate(0)
            for step in co_train(
                fleet,
                stream,
                verifiers,
                capability,
                algorithm,
                {name: recipe.sources(name) for name in recipe.learners},
                steps=range(start, recipe.steps),
                group_size=recipe.group_size,
                phases=phases,
                before_learning=saver.settle,
            ):
                recorder.step(step)
                completed = step.pool.step + 1
                evaluate(completed)
                saver.after(completed, capability.state(), recorder.score)
    return run


@contextmanager
def _models_uncollected() -> Iterator[None]:
    """Spare the garbage collector walking over models and libraries in every step."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def _kept_whatever_happens(
    run: RunFolder, fleet: Fleet, saver: Saver, observer: Observer, phases: Phases
) -> Iterator[None]:
    """Save the agents however the block ends, and record how it did."""

    def save() -> None:
        phases.last("save")
        saver.finish()
        with explain_disk(run.path):
            run.add_agents(fleet.save)

    state: State = "failed"
    try:
        yield
        save()
        state = "finished"
    except NotFinite as error:
        # What they are is no use to anybody, so it replaces nothing.
        good = saver.give_up()
        remedy = "lower the learning rate, or use float32 weights"
        raise UserError(
            f"{error}\nIts last good checkpoint is {good.path}; {remedy}, and --resume "
            "--accept-changes goes on from there"
            if good
            else f"{error}\nThere is no good checkpoint; {remedy}, and start anew with --overwrite"
        ) from error
    except (Interrupted, UserError) as error:
        state = "interrupted" if isinstance(error, Interrupted) else "failed"
        try:
            save()
        except UserError:  # the disk may be full; the first error says what to do
            pass
        except AgentLost as lost:  # no reason to go on: the run was to end
            observer.note(f"{lost}; the newest checkpoint is what there is of this run")
        raise
    except KeyboardInterrupt:
        state = "interrupted"
        raise
    finally:
        with suppress(OSError):
            run.set_state(state)


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

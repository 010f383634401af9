"""Saves joint checkpoints while the agents sample for the next step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from hacrl.config import Recipe
from hacrl.runs.checkpoints import Checkpoint, Progress, set_aside, write_checkpoint
from hacrl.runs.folder import RunFolder
from hacrl.runs.versions import library_versions

__all__ = ["Saver"]

Capability = Mapping[str, Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class _Rest:
    """The agents are at the end of a step and do not change."""

    progress: Progress
    saved: bool


class Saver:
    """Decides when a checkpoint is due and writes it. A context manager.

    The weights of the agents rest from the end of a step until they learn again. In that time they
    are read by a thread that writes them, without a copy in memory; only what is not on the disk
    when sampling has ended is waited for.

    Args:
        save_agents: see `Fleet.checkpoint`.
        data: fingerprint of the prompts of each task.
        files: marks of the files that the recipe names.
        start: steps that were completed before.
    """

    def __init__(
        self,
        recipe: Recipe,
        run: RunFolder,
        save_agents: Callable[[Path], None],
        data: Mapping[str, str],
        files: Mapping[str, str],
        start: int = 0,
    ) -> None:
        self._recipe = recipe
        self._run = run
        self._save_agents = save_agents
        self._data = data
        self._files = files
        self._completed: int | None = start  # by the agents as they are; None amid a step
        self._rest: _Rest | None = None
        self._writing: Future[Checkpoint] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.shutdown(wait=True)

    def after(self, completed: int, capability: Capability, score: float | None) -> None:
        """A step is complete. Begin a checkpoint, if it is time.

        Args:
            score: of the agents as they are, for the choice of the best checkpoint.
        """
        progress = Progress(
            completed,
            capability,
            self._data,
            score,
            self._run.lengths(),
            library_versions(),
            self._run.machines,
            self._files,
        )
        every = self._recipe.checkpoints.every
        due = completed == self._recipe.steps or (every is not None and completed % every == 0)
        self._rest = _Rest(progress, due)
        self._completed = completed
        if due:
            self._writing = self._thread.submit(self._write, progress)

    def settle(self) -> None:
        """Wait until a checkpoint that was begun is on the disk; then the agents may learn.

        Raises:
            UserError: it could not be written.
        """
        if self._writing is not None:
            writing, self._writing = self._writing, None
            writing.result()

    def leave(self) -> None:
        """The agents begin to learn, and are not at the end of a step any more."""
        self._rest = self._completed = None

    def finish(self) -> None:
        """The run ends here. If the agents are at the end of a step, that is saved.

        Raises:
            UserError: it could not be written.
        """
        self.settle()
        if self._rest is not None and not self._rest.saved:
            self._write(self._rest.progress)

    def give_up(self) -> Checkpoint | None:
        """The agents as they are turned out useless, and what holds them is no checkpoint.

        Returns:
            The newest checkpoint of what they were before, None if there is none.
        """
        self.settle()
        self._rest = None
        return set_aside(self._run.checkpoints_path, self._completed)

    def _write(self, progress: Progress) -> Checkpoint:
        return write_checkpoint(
            self._run.checkpoints_path,
            progress,
            self._recipe,
            self._save_agents,
            self._recipe.checkpoints.keep,
        )

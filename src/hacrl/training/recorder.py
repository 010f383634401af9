"""What happens once a step is complete: it is written down, shown, and judged."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hacrl.config import Recipe
from hacrl.config.checkpoints import REWARD
from hacrl.console.observer import Observer
from hacrl.errors import UserError
from hacrl.runs.folder import RunFolder
from hacrl.runs.writing import explain_disk
from hacrl.training.advice import Advisor
from hacrl.training.loggers import Loggers
from hacrl.training.loop import Step
from hacrl.training.metrics import step_metrics

__all__ = ["Recorder"]


class Recorder:
    """Records the steps of a run.

    Args:
        start: steps that were completed before.

    Attributes:
        score: of the agents as they are by `checkpoints.best`, mean over learners; None if it was
            not measured at this step.
    """

    def __init__(
        self, recipe: Recipe, run: RunFolder, observer: Observer, loggers: Loggers, start: int
    ) -> None:
        self._recipe = recipe
        self._run = run
        self._observer = observer
        self._loggers = loggers
        self._start = start
        self._started = time.perf_counter()
        self._advisor = Advisor()
        self.score: float | None = None

    def step(self, result: Step) -> None:
        """Write a step's rollouts, lessons and metrics, and say what is worth saying.

        Raises:
            UserError: the disk takes no more, or an agent keeps skipping its updates.
        """
        metrics = step_metrics(result, tuple(self._recipe.tasks), tuple(self._recipe.learners))
        with explain_disk(self._run.path):
            self._run.add_rollouts(result.pool)
            self._run.add_lessons(
                result.pool.step, (le for report in result.reports for le in report.lessons)
            )
            faults = self._run.add_faults(result.pool, result.reports)
            self._run.add_metrics(metrics)
        self._loggers.step(metrics)
        self.score = None
        if self._recipe.checkpoints.best == REWARD:
            learners = self._recipe.learners
            self.score = self._score(
                {row["agent"]: row["reward"] for row in metrics if row["agent"] in learners}
            )
        done = result.pool.step + 1
        per_step = (time.perf_counter() - self._started) / (done - self._start)
        self._observer.step(metrics, per_step * (self._recipe.steps - done))
        for text in self._advisor.advise(metrics):
            self._observer.note(text)
        self._refuse_endless_skipping(metrics, faults)

    def evaluation(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Take in the lines that were added to `evaluations.jsonl`."""
        self._loggers.evaluations(lines)
        for task in {line["task"] for line in lines}:
            if task == self._recipe.checkpoints.best:
                self.score = self._score(
                    {line["agent"]: line["value"] for line in lines if line["task"] == task}
                )

    def _score(self, values: Mapping[str, float | None]) -> float | None:
        """The mean over learners. Without one of them it could not be compared with the others'."""
        known = [value for value in values.values() if value is not None]
        complete = values.keys() == self._recipe.learners.keys()
        return sum(known) / len(known) if known and complete else None

    def _refuse_endless_skipping(
        self, metrics: Sequence[Mapping[str, Any]], faults: Path | None
    ) -> None:
        for row in metrics:
            if row.get("skipped_in_a_row", 0) > self._recipe.update.max_skipped:
                raise UserError(
                    f"agent {row['agent']}: skipped {row['skipped_in_a_row']} updates in a row, "
                    f"their loss or gradient was not finite; their rows are in {faults}\n"
                    "Lower the learning rate, train in float32, or raise update.max_skipped"
                )

"""The run folder.

recipe.yaml             resolved, enough to repeat the run
state.json              running, finished, interrupted or failed; versions; machines; clock
metrics.jsonl           one object per step and agent
rollouts/               every verified rollout, one Parquet file per step
lessons/                how each learner used each rollout, a file per step
evaluations.jsonl       one object per evaluation, agent and held-out task, if there are any
evaluations/step-N/     every answer to held-out problems after N steps
checkpoints/step-N/     all agents after N steps, complete or invisible; see `runs.checkpoints`
faults/                 rollouts and lessons of updates that were skipped, one Parquet file per step
agents/<name>/          after training: an ordinary Hugging Face model folder
report.html             what people look at
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from hacrl.agents.learning.reporting import LearnReport, LessonRecord
from hacrl.columns import LESSONS, ROLLOUTS, VERDICTS, to_table
from hacrl.config import Recipe, recipe_to_yaml
from hacrl.errors import UserError
from hacrl.records import Pool
from hacrl.runs.checkpoints import Progress
from hacrl.runs.schemas import FAULTS, TAUGHT, VERIFIED
from hacrl.runs.versions import library_versions
from hacrl.runs.writing import append_lines, sync, write_parquet, write_text

__all__ = ["RunFolder", "State"]

State = Literal["running", "finished", "interrupted", "failed"]
Machines = Mapping[str, Mapping[str, str]]


class RunFolder:
    """Writes one run. Every file appears whole or not at all, but `metrics.jsonl` and
    `evaluations.jsonl`, which grow.

    Use `RunFolder.create`, or `RunFolder.resume`.
    """

    def __init__(
        self, path: Path, machines: Machines | None = None, clock: datetime | None = None
    ) -> None:
        self.path = path
        self.machines = machines or {}
        self._clock = clock

    @classmethod
    def create(
        cls,
        root: Path,
        recipe: Recipe,
        *,
        overwrite: bool,
        machines: Machines | None = None,
        clock: datetime | None = None,
    ) -> RunFolder:
        """Make the folder `root/<recipe.name>` and write the resolved recipe.

        Args:
            machines: where each agent computes; see `Fleet.machines`.
            clock: that chat templates see.

        Raises:
            UserError: it exists and `overwrite` is false, or it exists and is no run folder.
        """
        path = root / recipe.name
        cls.check_free(root, recipe, overwrite=overwrite)
        if path.exists():
            shutil.rmtree(path)
        for name in ("rollouts", "lessons"):
            (path / name).mkdir(parents=True)
        run = cls(path, machines, clock)
        write_text(path / "recipe.yaml", recipe_to_yaml(recipe))
        run.set_state("running")
        return run

    @classmethod
    def resume(
        cls,
        root: Path,
        recipe: Recipe,
        progress: Progress,
        machines: Machines | None = None,
        clock: datetime | None = None,
    ) -> RunFolder:
        """Go on in an existing folder: what was written after the checkpoint is taken back."""
        run = cls(root / recipe.name, machines, clock)
        for path in run._growing():
            if path.exists():
                os.truncate(path, min(progress.lengths.get(path.name, 0), path.stat().st_size))
        for name in ("rollouts", "lessons", "faults", "evaluations"):
            for path in (run.path / name).glob("step-*"):
                number = int(path.name.removeprefix("step-").partition(".")[0])
                completed = number if name == "evaluations" else number + 1
                if completed > progress.completed or path.suffix == ".part":
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        write_text(run.path / "recipe.yaml", recipe_to_yaml(recipe))
        run.set_state("running")
        return run

    @staticmethod
    def check_free(root: Path, recipe: Recipe, *, overwrite: bool) -> None:
        """Say early what `create` would refuse."""
        path = root / recipe.name
        if not path.exists():
            return
        if not overwrite:
            raise UserError(
                f"run folder {path} exists; pass --resume to continue it, --overwrite to replace "
                "it, or choose another with name=…"
            )
        if not (path / "recipe.yaml").is_file():
            raise UserError(f"run folder {path} is not a run of hacrl; it is left as it is")

    @property
    def metrics_path(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def agents_path(self) -> Path:
        return self.path / "agents"

    @property
    def checkpoints_path(self) -> Path:
        return self.path / "checkpoints"

    def lengths(self) -> dict[str, int]:
        """Bytes of the files that grow, all of which are on the disk itself on return."""
        existing = [path for path in self._growing() if path.exists()]
        for path in existing:
            sync(path)
        return {path.name: path.stat().st_size for path in existing}

    def set_state(self, state: State) -> None:
        """Record how the run stands."""
        content: dict[str, Any] = {
            "state": state,
            "versions": library_versions(),
            "machines": self.machines,
        }
        if self._clock is not None:
            content["clock"] = self._clock.isoformat()
        write_text(self.path / "state.json", json.dumps(content, indent=2) + "\n")

    def add_metrics(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append one line per agent."""
        append_lines(self.metrics_path, rows)

    def add_rollouts(self, pool: Pool) -> None:
        """Store every rollout of a step with its prompt and verdict."""
        prompts = [pool.prompts[row.rollout.prompt] for row in pool.rows]
        table = pa.table(
            [
                [pool.step] * len(pool.rows),
                *([getattr(p, name) for p in prompts] for name in ("id", "text", "gold")),
                *to_table([row.rollout for row in pool.rows], ROLLOUTS).columns,
                *to_table([row.verdict for row in pool.rows], VERDICTS).columns,
            ],
            schema=VERIFIED,
        )
        write_parquet(self.path / "rollouts" / _step_file(pool.step), table)

    def add_lessons(self, step: int, lessons: Iterable[LessonRecord]) -> None:
        """Store what each learner made of each rollout."""
        rows = list(lessons)
        columns = to_table(rows, LESSONS).columns
        table = pa.table([[step] * len(rows), *columns], schema=TAUGHT)
        write_parquet(self.path / "lessons" / _step_file(step), table)

    def add_faults(self, pool: Pool, reports: Iterable[LearnReport]) -> Path | None:
        """Store the rows of updates that were skipped, if there were any; the file that has them.

        Each has the text of a rollout, and how the learner used it.
        """
        rollouts = {(r.rollout.agent, r.rollout.prompt, r.rollout.sample): r for r in pool.rows}
        rows = [
            {
                "step": pool.step,
                **asdict(lesson),
                "prompt_id": pool.prompts[lesson.prompt].id,
                "prompt_text": pool.prompts[lesson.prompt].text,
                "text": row.rollout.text,
                "reward": row.verdict.reward,
            }
            for report in reports
            for lesson in report.lessons
            if lesson.update in report.skipped
            and (row := rollouts[lesson.agent, lesson.prompt, lesson.sample])
        ]
        if not rows:
            return None
        path = self.path / "faults" / _step_file(pool.step)
        path.parent.mkdir(exist_ok=True)
        write_parquet(path, pa.Table.from_pylist(rows, schema=FAULTS))
        return path

    def _growing(self) -> tuple[Path, Path]:
        return self.metrics_path, self.path / "evaluations.jsonl"

    def add_agents(self, save: Callable[[Path], None]) -> None:
        """Let `save` write all agents; the folder appears when they are complete."""
        part = self.path / "agents.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        save(part)
        shutil.rmtree(self.agents_path, ignore_errors=True)
        part.rename(self.agents_path)


def _step_file(step: int) -> str:
    return f"step-{step:06d}.parquet"

"""The run folder.

recipe.yaml             resolved, enough to repeat the run
state.json              running, finished, interrupted or failed; versions
metrics.jsonl           one object per step and agent
rollouts/               every verified rollout, one Parquet file per step
lessons/                what each learner made of each rollout, likewise
evaluations.jsonl       one object per evaluation, agent and held-out task, if there are any
evaluations/step-N/     every answer to held-out problems after N steps
agents/<name>/          after training: an ordinary Hugging Face model folder
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from hacrl.agents.reporting import LessonRecord
from hacrl.config import Recipe, recipe_to_yaml
from hacrl.errors import UserError
from hacrl.records import Pool
from hacrl.runs.writing import append_lines, write_parquet, write_text

__all__ = ["RunFolder"]

State = Literal["running", "finished", "interrupted", "failed"]


class RunFolder:
    """Writes one run. Every file appears whole or not at all, but `metrics.jsonl` and
    `evaluations.jsonl`, which grow.

    Use `RunFolder.create`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, root: Path, recipe: Recipe, *, overwrite: bool) -> RunFolder:
        """Make the folder `root/<recipe.name>` and write the resolved recipe.

        Raises:
            UserError: it exists and `overwrite` is false, or it exists and is no run folder.
        """
        path = root / recipe.name
        cls.check_free(root, recipe, overwrite=overwrite)
        if path.exists():
            shutil.rmtree(path)
        for name in ("rollouts", "lessons"):
            (path / name).mkdir(parents=True)
        run = cls(path)
        write_text(path / "recipe.yaml", recipe_to_yaml(recipe))
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
                f"run folder {path} exists; choose another with name=…, or pass --overwrite"
            )
        if not (path / "recipe.yaml").is_file():
            raise UserError(f"run folder {path} is not a run of ours; it is left alone")

    @property
    def metrics_path(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def agents_path(self) -> Path:
        return self.path / "agents"

    def set_state(self, state: State) -> None:
        """Record how the run stands."""
        content = {
            "state": state,
            "versions": {name: version(name) for name in ("hacrl", "torch", "transformers")},
        }
        write_text(self.path / "state.json", json.dumps(content, indent=2) + "\n")

    def add_metrics(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append one line per agent."""
        append_lines(self.metrics_path, rows)

    def add_rollouts(self, pool: Pool) -> None:
        """Store every rollout of a step with its prompt and verdict."""
        columns: dict[str, list[Any]] = {
            "step": [pool.step] * len(pool.rows),
            "prompt_id": [pool.prompts[r.rollout.prompt].id for r in pool.rows],
            "prompt_text": [pool.prompts[r.rollout.prompt].text for r in pool.rows],
            "gold": [pool.prompts[r.rollout.prompt].gold for r in pool.rows],
            **{
                name: [getattr(r.rollout, name) for r in pool.rows]
                for name in (
                    *("prompt", "agent", "sample", "policy_version", "text", "token_ids"),
                    *("token_logprobs", "finished", "unshareable", "logprob", "length"),
                )
            },
            "reward": [r.verdict.reward for r in pool.rows],
            "outcome": [str(r.verdict.outcome) for r in pool.rows],
            "answer": [r.verdict.answer for r in pool.rows],
        }
        write_parquet(self.path / "rollouts" / _step_file(pool.step), columns)

    def add_lessons(self, step: int, lessons: Iterable[LessonRecord]) -> None:
        """Store what each learner made of each rollout."""
        rows = list(lessons)
        columns = {
            field.name: [getattr(row, field.name) for row in rows] for field in fields(LessonRecord)
        }
        write_parquet(self.path / "lessons" / _step_file(step), columns)

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

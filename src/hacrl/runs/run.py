"""A run as it lies on the disk, for those who read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from hacrl.config import Recipe, load_recipe
from hacrl.errors import UserError
from hacrl.runs.schemas import TAUGHT, VERIFIED
from hacrl.runs.writing import read_lines

__all__ = ["Run"]


class Run:
    """Reads one run folder, also while the run goes on; changes nothing in it.

    Tables are Arrow's; `.to_pandas()` makes data frames of them.

    Args:
        path: the run folder.

    Raises:
        UserError: it is no run folder.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        if not (self.path / "recipe.yaml").is_file():
            raise UserError(f"{path}: is no run folder (it has no recipe.yaml)")

    @property
    def recipe(self) -> Recipe:
        """The recipe, resolved.

        Raises:
            UserError: another version wrote it, and this one cannot read it.
        """
        return load_recipe(self.path / "recipe.yaml")

    @property
    def state(self) -> str:
        """`running`, `finished`, `interrupted` or `failed`, as the run itself has written it."""
        content: dict[str, str] = json.loads((self.path / "state.json").read_text("utf-8"))
        return content["state"]

    @property
    def agents(self) -> dict[str, Path]:
        """The trained agents, by name: ordinary Hugging Face folders. None before the end."""
        folder = self.path / "agents"
        return {own.name: own for own in sorted(folder.iterdir())} if folder.is_dir() else {}

    def metrics(self) -> Any:
        """A row per step and agent; see `docs/metrics.md`. What an agent lacks is null."""
        return pa.Table.from_pylist(read_lines(self.path / "metrics.jsonl"))

    def rollouts(self) -> Any:
        """A row per verified rollout of every step."""
        return self._steps("rollouts", VERIFIED)

    def lessons(self) -> Any:
        """A row per learner and rollout of every step: what the learner made of it."""
        return self._steps("lessons", TAUGHT)

    def _steps(self, name: str, schema: Any) -> Any:
        files = sorted((self.path / name).glob("step-*.parquet"))
        return ds.dataset(files, schema=schema, format="parquet").to_table()

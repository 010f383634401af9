"""What the study consists of: cells, each one run, declared in `grid.yaml`."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict

from hacrl.config import Recipe, recipe_from_dict
from studies.problems import HELD_OUT, TUNING

__all__ = ["ALONE", "GRID", "Cell", "Grid"]

GRID = Path(__file__).with_name("grid.yaml")
ALONE = "alone"
"""The setting of a cell in which one agent trains by itself."""
STRONG_TO_WEAK = "strong_to_weak"
Part = Literal["main", "ablations", "tuning"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Block(_Strict):
    methods: list[str]
    settings: list[str]
    seeds: list[int]


class _Tuning(_Strict):
    learning_rates: list[float]
    settings: list[str]
    seed: int


@dataclass(frozen=True)
class Cell:
    """One run.

    Args:
        method: a key of the grid's `methods`.
        setting: a key of its `settings`, or `ALONE`.
        agents: strongest first.
        tuning: whether it serves to choose a learning rate, and is evaluated on other problems.
    """

    part: Part
    method: str
    setting: str
    agents: tuple[str, ...]
    seed: int
    learning_rate: float
    tuning: bool = False

    @property
    def name(self) -> str:
        """Of the run; different cells have different ones."""
        where = self.agents[0] if self.setting == ALONE else self.setting
        rate = f".{self.learning_rate:g}" if self.tuning else ""
        return f"{self.method}.{where}.{self.seed}{rate}"


class Grid(_Strict):
    """The contents of `grid.yaml`."""

    recipe: dict[str, Any]
    """What all runs have in common; `{models}` in a path stands for the folder of the models."""
    settings: dict[str, list[str]]
    """The agents of each setting, strongest first."""
    methods: dict[str, dict[str, Any]]
    """Dotted keys that a method changes in the recipe."""
    changes: list[str] = []
    """Overrides of every recipe, as on the command line of `hacrl train`."""
    main: _Block
    ablations: _Block
    tuning: _Tuning

    @classmethod
    def load(cls, path: Path = GRID) -> Self:
        """Read a grid.

        Raises:
            pydantic.ValidationError: it is malformed.
        """
        return cls.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))

    def smaller(self, changes: Sequence[str]) -> Self:
        """The same methods and settings at one seed and one tried learning rate, each run changed
        by overrides `dotted.key=value` of the recipe.
        """
        tuning = self.tuning.model_copy(update={"learning_rates": self.tuning.learning_rates[:1]})
        blocks = {
            name: block.model_copy(update={"seeds": block.seeds[:1]})
            for name, block in (("main", self.main), ("ablations", self.ablations))
        }
        return self.model_copy(
            update={**blocks, "tuning": tuning, "changes": [*self.changes, *changes]}
        )

    def cells(self, rates: Mapping[str, float]) -> list[Cell]:
        """All cells of the main table and of the ablations.

        Args:
            rates: the learning rate of every method of the main table.
        """
        found: dict[Cell, None] = {}
        blocks: dict[Part, _Block] = {"main": self.main, "ablations": self.ablations}
        for part, block in blocks.items():
            for seed in block.seeds:
                for method in block.methods:
                    rate = rates[method if method in rates else "hacpo"]
                    for cell in self._cells(part, method, block.settings, seed, rate):
                        found[cell] = None
        return list(found)

    def tuning_cells(self) -> list[Cell]:
        """The search for the learning rates: the same for every method of the main table."""
        return [
            Cell("tuning", c.method, c.setting, c.agents, c.seed, rate, tuning=True)
            for method in self.main.methods
            for rate in self.tuning.learning_rates
            for c in self._cells("tuning", method, self.tuning.settings, self.tuning.seed, rate)
        ]

    def recipe_of(self, cell: Cell, models: Path) -> Recipe:
        """The recipe of a cell's run.

        Args:
            models: the folder of the models and of `data/`.
        """
        raw = _with_folder(copy.deepcopy(self.recipe), models)
        raw |= {"name": cell.name, "seed": cell.seed}
        raw["agents"] = {name: {"model": str(models / name)} for name in cell.agents}
        raw["optimizer"] = {**raw.get("optimizer", {}), "learning_rate": cell.learning_rate}
        verifier = raw["tasks"]["chains"]["verifier"]
        raw["evaluation"] |= {
            "greedy": False,
            "tasks": {
                name: {
                    "source": {"type": "jsonl", "path": str(models / "data" / f"{name}.jsonl")},
                    "verifier": verifier,
                }
                for name in ([TUNING] if cell.tuning else HELD_OUT)
            },
        }
        changes = dict(self.methods[cell.method])
        if changes.get("sharing") == STRONG_TO_WEAK:
            changes["sharing"] = {
                learner: list(cell.agents[:i]) for i, learner in enumerate(cell.agents) if i
            }
        own = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
        return recipe_from_dict(raw, [*own, *self.changes])

    def alone(self, method: str) -> bool:
        """Whether nobody shares in a method, so that its cells are single agents."""
        return self.methods[method].get("method") in ("grpo", "gspo", "gspo_x2")

    def _cells(
        self, part: Part, method: str, settings: Sequence[str], seed: int, rate: float
    ) -> Iterator[Cell]:
        """The cells of a method; an agent by itself is one cell, however many settings it is in."""
        if not self.alone(method):
            for setting in settings:
                yield Cell(part, method, setting, tuple(self.settings[setting]), seed, rate)
            return
        for agent in dict.fromkeys(a for setting in settings for a in self.settings[setting]):
            yield Cell(part, method, ALONE, (agent,), seed, rate)


def _with_folder(tree: Any, models: Path) -> Any:
    """Put the folder in place of `{models}`."""
    if isinstance(tree, Mapping):
        return {key: _with_folder(value, models) for key, value in tree.items()}
    if isinstance(tree, str):
        return tree.replace("{models}", str(models))
    return tree

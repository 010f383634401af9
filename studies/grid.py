"""What the study consists of: cells, each one run, declared in `grid.yaml`."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import BaseModel, ConfigDict

from hacrl.config import Recipe, recipe_from_dict
from studies.problems import HELD_OUT, TUNING

__all__ = ["ABLATIONS", "ALONE", "GRID", "MAIN", "Cell", "Grid", "Question"]

GRID = Path(__file__).with_name("grid.yaml")
ALONE = "alone"
"""The setting of a cell in which one agent trains by itself."""
STRONG_TO_WEAK = "strong_to_weak"
MAIN = "main"
ABLATIONS = "ablations"
TUNING_PART = "tuning"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Block(_Strict):
    methods: list[str]
    settings: list[str]
    seeds: list[int]


class Question(_Block):
    """Something that the main table leaves open, answered by a few more cells."""

    title: str
    learning_rates: list[float] = []
    """Tried with every method; none: the method's own, as in the main table."""
    changes: dict[str, Any] = {}
    """Dotted keys that it changes in every recipe."""


class _Tuning(_Strict):
    learning_rates: list[float]
    settings: list[str]
    seed: int


@dataclass(frozen=True)
class Cell:
    """One run, and what it is for.

    Args:
        part: `main`, `ablations`, `tuning` or the name of a question. A run can serve several.
        method: a key of the grid's `methods`.
        setting: a key of its `settings`, or `ALONE`.
        agents: strongest first.
        variant: what tells the run from that of the main table; empty if nothing does.
    """

    part: str
    method: str
    setting: str
    agents: tuple[str, ...]
    seed: int
    learning_rate: float
    variant: str = ""

    @property
    def name(self) -> str:
        """Of the run; cells with the same recipe share it."""
        where = self.agents[0] if self.setting == ALONE else self.setting
        return ".".join(filter(None, (self.method, where, str(self.seed), self.variant)))


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
    questions: dict[str, Question] = {}
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
        first = {"seeds": self.main.seeds[:1]}
        questions = {
            name: question.model_copy(
                update={**first, "learning_rates": question.learning_rates[:1]}
            )
            for name, question in self.questions.items()
        }
        return self.model_copy(
            update={
                "main": self.main.model_copy(update=first),
                "ablations": self.ablations.model_copy(update=first),
                "questions": questions,
                "tuning": self.tuning.model_copy(
                    update={"learning_rates": self.tuning.learning_rates[:1]}
                ),
                "changes": [*self.changes, *changes],
            }
        )

    @property
    def main_settings(self) -> dict[str, list[str]]:
        """The agents of each setting of the main table."""
        return {name: self.settings[name] for name in self.main.settings}

    def cells(self, rates: Mapping[str, float]) -> list[Cell]:
        """All cells of the main table, of the ablations and of the questions.

        Args:
            rates: the learning rate of every method of the main table.
        """
        found: list[Cell] = []
        for part, block in ((MAIN, self.main), (ABLATIONS, self.ablations)):
            for method, seed in itertools.product(block.methods, block.seeds):
                found += self._cells(part, method, block.settings, seed, _rate(rates, method))
        for name, question in self.questions.items():
            for method, seed in itertools.product(question.methods, question.seeds):
                own = _rate(rates, method)
                for rate in question.learning_rates or [own]:
                    variant = [name] if question.changes else []
                    variant += [f"{rate:g}"] if rate != own else []
                    found += self._cells(
                        name, method, question.settings, seed, rate, ".".join(variant)
                    )
        return sorted(found, key=lambda cell: cell.seed)  # whole tables of a few seeds come first

    def tuning_cells(self) -> list[Cell]:
        """The search for the learning rates: the same for every method of the main table."""
        return [
            cell
            for method in self.main.methods
            for rate in self.tuning.learning_rates
            for cell in self._cells(
                TUNING_PART, method, self.tuning.settings, self.tuning.seed, rate, f"{rate:g}"
            )
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
                for name in ([TUNING] if cell.part == TUNING_PART else HELD_OUT)
            },
        }
        changes = dict(self.methods[cell.method])
        if changes.get("sharing") == STRONG_TO_WEAK:
            changes["sharing"] = {
                learner: list(cell.agents[:i]) for i, learner in enumerate(cell.agents) if i
            }
        if cell.part in self.questions:
            changes |= self.questions[cell.part].changes
        own = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
        return recipe_from_dict(raw, [*own, *self.changes])

    def alone(self, method: str) -> bool:
        """Whether no agent shares in a method, so that its cells are single agents."""
        return self.methods[method].get("method") in ("grpo", "gspo", "gspo_x2")

    def _cells(
        self,
        part: str,
        method: str,
        settings: Sequence[str],
        seed: int,
        rate: float,
        variant: str = "",
    ) -> Iterator[Cell]:
        """The cells of a method; an agent by itself is one cell, however many settings it is in."""
        if not self.alone(method):
            for name in settings:
                yield Cell(part, method, name, tuple(self.settings[name]), seed, rate, variant)
            return
        for agent in dict.fromkeys(a for name in settings for a in self.settings[name]):
            yield Cell(part, method, ALONE, (agent,), seed, rate, variant)


def _rate(rates: Mapping[str, float], method: str) -> float:
    """The learning rate of a method; a variant of HACPO takes that of HACPO."""
    return rates[method if method in rates else "hacpo"]


def _with_folder(tree: Any, models: Path) -> Any:
    """Put the folder in place of `{models}`."""
    if isinstance(tree, Mapping):
        return {key: _with_folder(value, models) for key, value in tree.items()}
    if isinstance(tree, str):
        return tree.replace("{models}", str(models))
    return tree

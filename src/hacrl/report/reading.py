"""Run folders as plain values, however the run ended.

A run may be going on, may have been interrupted in the middle of a line, or resumed; what cannot be
used is left out with a note.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hacrl.algorithm.methods import method_label
from hacrl.errors import UserError

__all__ = ["Row", "RunData", "read_run", "read_runs"]

Row = Mapping[str, Any]

_METRICS = frozenset(
    (
        *("step", "agent", "reward", "scored", "unscored", "outcomes", "truncated"),
        *("generated_tokens", "seconds"),
    )
)
"""Keys without which a line of `metrics.jsonl` is not one of ours."""
_LEARNING = frozenset(
    (
        *("omega", "groups", "groups_without_signal", "skipped_updates", "own"),
        *("sources", "guard_rate"),
    )
)
"""Keys that the line of an agent that learns has besides; that of another has none of them."""
_EVALUATIONS = frozenset(("step", "agent", "task", "value"))


@dataclass(frozen=True)
class RunData:
    """What a run has left so far.

    Args:
        path: of the run folder.
        label: short name, distinct among the runs of a report.
        state: as in `state.json`, or `unknown`.
        versions: of libraries, by name.
        recipe: resolved, as nested mappings; empty if it cannot be read.
        agents: names, in the order of the recipe.
        rows: of `metrics.jsonl`, by step, one per step and agent.
        evaluations: of `evaluations.jsonl`, by step.
        notes: what had to be left out, in sentences.
        machines: where each agent computed; see `hacrl.fleet.machine`.
    """

    path: Path
    label: str
    state: str
    versions: Mapping[str, str]
    recipe: Mapping[str, Any]
    agents: tuple[str, ...]
    rows: tuple[Row, ...]
    evaluations: tuple[Row, ...]
    notes: tuple[str, ...]
    machines: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def completed(self) -> int:
        """Steps that every agent has completed, counted from the start of the run."""
        return max((row["step"] + 1 for row in self.rows), default=0)

    def of(self, agent: str) -> list[Row]:
        """The metrics of one agent, by step."""
        return [row for row in self.rows if row["agent"] == agent]

    @property
    def learners(self) -> tuple[str, ...]:
        """The agents that have learned so far, in the order of the recipe."""
        names = {row["agent"] for row in self.rows if "sources" in row}
        return tuple(name for name in self.agents if name in names)

    def learns(self, agent: str) -> bool:
        """Whether an agent learns, as far as the run has come."""
        return agent in self.learners or not self.of(agent)

    @property
    def method(self) -> str:
        """The method of the recipe, or the user's function; "" if it cannot be read."""
        return method_label(self.setting("method"))

    def setting(self, key: str) -> Any:
        """A setting of the recipe by its dotted key, None if it is not there."""
        node: Any = self.recipe
        for part in key.split("."):
            node = node.get(part) if isinstance(node, Mapping) else None
        return node


def read_runs(paths: Sequence[Path]) -> list[RunData]:
    """Read run folders, each once, with distinct labels.

    Raises:
        UserError: a folder is not one of a run.
    """
    folders = list({path.resolve(): path for path in paths})
    names = [folder.name for folder in folders]
    labels = [
        folder.name if names.count(folder.name) == 1 else f"{folder.parent.name}/{folder.name}"
        for folder in folders
    ]
    if len(set(labels)) < len(labels):
        labels = [str(folder) for folder in folders]
    return [read_run(folder, label) for folder, label in zip(folders, labels, strict=True)]


def read_run(path: Path, label: str) -> RunData:
    """Read one run folder.

    Raises:
        UserError: it is not one of a run, or a file in it cannot be read.
    """
    if not path.is_dir():
        raise UserError(f"{path}: there is no such folder; name a run, such as runs/first")
    if not (path / "recipe.yaml").is_file():
        raise UserError(f"{path}: is not a run folder, it holds no recipe.yaml")
    notes: list[str] = []
    recipe = _mapping(yaml.safe_load, path / "recipe.yaml", notes)
    state = _mapping(json.loads, path / "state.json", notes)
    rows = _rows(path / "metrics.jsonl", _METRICS, ("step", "agent"), notes)
    evaluations = _rows(path / "evaluations.jsonl", _EVALUATIONS, ("step", "task", "agent"), notes)
    agents = list(recipe.get("agents") or {})
    agents += [name for name in dict.fromkeys(row["agent"] for row in rows) if name not in agents]
    return RunData(
        path=path,
        label=label,
        state=str(state.get("state", "unknown")),
        versions=dict(state.get("versions") or {}),
        recipe=recipe,
        agents=tuple(agents),
        rows=tuple(rows),
        evaluations=tuple(evaluations),
        notes=tuple(notes),
        machines=dict(state.get("machines") or {}),
    )


def _mapping(parse: Any, path: Path, notes: list[str]) -> dict[str, Any]:
    try:
        content = parse(path.read_text("utf-8"))
    except FileNotFoundError:
        content = None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, yaml.YAMLError):
        content = None
    if isinstance(content, dict):
        return content
    notes.append(f"{path.name} is missing or damaged")
    return {}


def _rows(
    path: Path, needed: Iterable[str], identity: Sequence[str], notes: list[str]
) -> list[Row]:
    """The lines of a file by step. Of lines about the same thing the last one counts."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    damaged, again = 0, 0
    rows_by_key: dict[tuple[Any, ...], Row] = {}
    for number, line in enumerate(lines, 1):
        row = _row(line, frozenset(needed))
        if row is None:
            damaged += 1
            if number == len(lines):
                notes.append(f"{path.name}: the last line is not complete and is ignored")
            continue
        key = tuple(row[name] for name in identity)
        again += key in rows_by_key
        rows_by_key[key] = row
    torn = damaged and notes and notes[-1].startswith(f"{path.name}: the last line")
    if damaged > bool(torn):
        notes.append(f"{path.name}: {damaged - bool(torn)} damaged lines are ignored")
    if again:
        notes.append(
            f"{path.name}: {again} lines were written again, as after a resume; the last ones count"
        )
    return sorted(rows_by_key.values(), key=lambda row: row["step"])


def _row(line: bytes, needed: frozenset[str]) -> Row | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    whole = isinstance(row, dict) and needed <= row.keys()
    if whole and needed == _METRICS and 0 < len(_LEARNING & row.keys()) < len(_LEARNING):
        return None
    return row if whole and isinstance(row["step"], int) and isinstance(row["agent"], str) else None

"""What an agent of a run answered, read back from the run's folder."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hacrl.errors import UserError, first_line
from hacrl.records import Prompt

__all__ = ["PromptKey", "Recorded", "prompt_key", "read_recorded", "rollout_files"]

PromptKey = tuple[str, str]

_STEP_FILE = re.compile(r"step-\d+\.parquet")
_TEXTS = ("prompt_id", "prompt_text", "agent", "text")
_NUMBERS = ("prompt", "sample", "policy_version", "logprob", "length")
_COLUMNS = (*_TEXTS, *_NUMBERS, "finished", "unshareable")


@dataclass(frozen=True, slots=True)
class Recorded:
    """One response of an earlier run. The fields are those of `Rollout`."""

    policy_version: int
    text: str
    logprob: float
    length: int
    finished: bool
    unshareable: str | None


def prompt_key(prompt: Prompt) -> PromptKey:
    """By which a prompt is known in other runs, wherever it stands in a batch.

    Its id says task and row, its text is the user's turn. The rollouts of a run hold no more of it.
    """
    return prompt.id, prompt.text


def rollout_files(run: Path) -> list[Path]:
    """The files of a run's rollouts, by step."""
    if not os.path.isdir(run / "rollouts"):
        return []
    files = [path for path in (run / "rollouts").iterdir() if _STEP_FILE.fullmatch(path.name)]
    return sorted(files, key=lambda path: int(path.stem.removeprefix("step-")))


def read_recorded(
    run: Path, agent: str | None, group_size: int
) -> tuple[str, Mapping[PromptKey, Sequence[Recorded]]]:
    """The responses of one agent of a run to each prompt, `group_size` at most.

    Of a prompt that was answered several times, those are taken that were drawn together: the
    newest group that has enough of them, else the largest, the newest of equals.

    Args:
        agent: None for the only one that the run has rollouts of.

    Returns:
        The agent's name, and its responses by prompt.

    Raises:
        UserError: there is no such run or agent, or a file cannot be read. The message is to
            follow the name of a key, and begins with `path` or `agent`.
    """
    if not os.path.isdir(run):  # False, too, where a name is too long for any folder
        raise UserError(f"path: there is no run at {run}")
    files = rollout_files(run)
    if not files:
        raise UserError(f"path: {run} has no rollouts (rollouts/step-*.parquet)")
    known = sorted({name for path in files for name in _agents(path)})
    if agent is None:
        if len(known) > 1:
            raise UserError(f"agent: {run} has rollouts of {', '.join(known)}; name one of them")
        agent = known[0] if known else ""
    if agent not in known:
        raise UserError(
            f"agent: {run} has no rollouts of {agent}; it has those of {', '.join(known) or 'none'}"
        )
    chosen: dict[PromptKey, Sequence[Recorded]] = {}
    for path in reversed(files):
        rows = _read(path, _COLUMNS).filter(pc.field("agent") == agent)
        for key, group in _groups(path, rows):
            if len(chosen.get(key, ())) < min(len(group), group_size):
                chosen[key] = group[:group_size]
    return agent, chosen


def _read(path: Path, columns: Sequence[str]) -> Any:
    try:
        return pq.read_table(path, columns=list(columns))
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"path: {path} cannot be read ({first_line(error)})") from error


def _agents(path: Path) -> list[str]:
    names = _read(path, ("agent",))["agent"].unique().to_pylist()
    return [name for name in names if isinstance(name, str)]


def _groups(path: Path, table: Any) -> Iterator[tuple[PromptKey, list[Recorded]]]:
    """The responses to each prompt of a step, in the order of their samples. A prompt that was in
    the batch twice has two groups, the later one first."""
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for row in table.to_pylist():
        _check(path, row)
        groups.setdefault(row["prompt"], []).append(row)
    for _, rows in sorted(groups.items(), reverse=True):
        rows.sort(key=lambda row: row["sample"])
        key = (rows[0]["prompt_id"], rows[0]["prompt_text"])
        yield key, [Recorded(**{name: row[name] for name in Recorded.__slots__}) for row in rows]


def _check(path: Path, row: Mapping[str, Any]) -> None:
    kinds = (*((name, str) for name in _TEXTS), *((name, int | float) for name in _NUMBERS))
    for name, kind in (*kinds, ("finished", bool)):
        if not isinstance(row[name], kind):
            raise UserError(f"path: {path} has a row without {name}")
    if not math.isfinite(row["logprob"]) or row["length"] < 1:
        raise UserError(f"path: {path} has a row whose logprob or length is no such number")

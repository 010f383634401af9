"""Responses on disk. An evaluation that was stopped continues from what is here.

DIR/<agent>/<benchmark>-<key>/evaluation.json      agent, problems and settings
DIR/<agent>/<benchmark>-<key>/answers-*.parquet    chunks, each complete or absent
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hacrl.errors import UserError
from hacrl.evaluation.answers import Answer, Headline
from hacrl.evaluation.jobs import Job
from hacrl.evaluation.targets import Target
from hacrl.runs.schemas import ANSWERS
from hacrl.runs.writing import write_parquet, write_text

__all__ = ["Stored", "open_store", "read_answers", "stored_evaluations", "write_answers"]

_ABOUT = "evaluation.json"


@dataclass(frozen=True, slots=True)
class Stored:
    """The answers of one agent to one benchmark, as far as there are any.

    Args:
        path: folder.
        label: the agent's name in tables.
        fingerprint: of the agent; see `target_fingerprint`.
        benchmark: name.
        key: see `Job.key`.
        samples: k, responses per problem.
        headline: which figure stands for the benchmark.
    """

    path: Path
    label: str
    fingerprint: str
    benchmark: str
    key: str
    samples: int
    headline: Headline

    def answers(self) -> list[Answer]:
        """All that are complete.

        Raises:
            UserError: a file is damaged.
        """
        parts = sorted(self.path.glob("answers-*.parquet"))
        return [answer for part in parts for answer in read_answers(part)]

    def add(self, answers: Sequence[Answer]) -> None:
        """Store the answers to some problems.

        Raises:
            UserError: the file cannot be written.
        """
        # Other problems, or the same ones after a change, never take the place of these.
        asked = json.dumps([(a.problem, a.sample, a.prompt, a.gold) for a in answers])
        name = hashlib.sha256(asked.encode()).hexdigest()[:16]
        write_answers(self.path / f"answers-{name}.parquet", answers)


def open_store(root: Path, target: Target, fingerprint: str, job: Job) -> Stored:
    """The place for the answers of a target to a job; its folder is made.

    Args:
        fingerprint: the target's fingerprint.

    Raises:
        UserError: the folder cannot be made.
    """
    both = hashlib.sha256(f"{fingerprint}{job.key}".encode()).hexdigest()
    path = root / _safe(target.label) / f"{_safe(job.name)}-{both[:10]}"
    settings = job.settings
    stored = Stored(
        path, target.label, fingerprint, job.name, job.key, settings.samples, settings.headline
    )
    about = {
        **{k: v for k, v in asdict(stored).items() if k != "path"},
        "model": target.spec.model_dump(mode="json", exclude={"learning_rate"}),
        "task": job.task.model_dump(mode="json"),
        "settings": asdict(settings),
    }
    try:
        path.mkdir(parents=True, exist_ok=True)
        write_text(path / _ABOUT, json.dumps(about, indent=2) + "\n")
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from error
    return stored


def stored_evaluations(root: Path) -> Iterator[Stored]:
    """All evaluations below a folder."""
    for about in sorted(root.glob(f"*/*/{_ABOUT}")):
        try:
            content: dict[str, Any] = json.loads(about.read_text("utf-8"))
            names = [field.name for field in fields(Stored) if field.name != "path"]
            yield Stored(about.parent, **{name: content[name] for name in names})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{about}: is damaged; delete its folder and evaluate again") from error


def read_answers(path: Path) -> list[Answer]:
    """The answers of one file.

    Raises:
        UserError: it is damaged.
    """
    try:
        return [Answer(**row) for row in pq.read_table(path).to_pylist()]
    except (OSError, pa.ArrowException, TypeError) as error:
        raise UserError(
            f"{path}: is damaged; delete it and evaluate again, which continues from the rest"
        ) from error


def write_answers(path: Path, answers: Iterable[Answer]) -> None:
    """Write one file of answers whole.

    Raises:
        UserError: it cannot be written.
    """
    rows = [asdict(answer) for answer in answers]
    columns = {field.name: [row[field.name] for row in rows] for field in fields(Answer)}
    try:
        write_parquet(path, pa.table(columns, schema=ANSWERS))
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written ({error.strerror or error})\n"
            "What was complete before is kept; the same command continues from there"
        ) from error


def _safe(name: str) -> str:
    """A name as a folder."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "agent"

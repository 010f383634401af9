"""Records as Arrow columns: one schema for each, between processes and on the disk.

A column is one buffer, which the object store of a cluster hands to every reader of a machine
without a copy, while records would be pickled one by one. With a schema, a column that holds
nothing but gaps in one step has the same type there as in the others, so that the files of a run
are one table.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pyarrow as pa

__all__ = ["LESSONS", "PROMPTS", "ROLLOUTS", "VERDICTS", "from_table", "to_table"]

T = TypeVar("T")

PROMPTS = pa.schema(
    [
        *((name, pa.string()) for name in ("id", "task", "text", "gold", "system")),
        ("history", pa.list_(pa.list_(pa.string()))),
    ]
)
"""Of a `Prompt`. Metadata and alternatives stay behind: they are for verifiers."""

ROLLOUTS = pa.schema(
    [
        ("prompt", pa.int32()),
        ("agent", pa.string()),
        ("sample", pa.int32()),
        ("policy_version", pa.int64()),
        ("text", pa.string()),
        ("logprob", pa.float64()),
        ("length", pa.int32()),
        ("finished", pa.bool_()),
        ("unshareable", pa.string()),
    ]
)
"""Of a `Rollout`."""

VERDICTS = pa.schema([("reward", pa.float64()), ("outcome", pa.string()), ("answer", pa.string())])
"""Of a `Verdict`."""

LESSONS = pa.schema(
    [
        ("learner", pa.string()),
        ("agent", pa.string()),
        ("prompt", pa.int32()),
        ("sample", pa.int32()),
        ("advantage", pa.float64()),
        ("tokens", pa.int32()),
        ("left_out", pa.string()),
        ("update", pa.int32()),
        ("log_ratio", pa.float64()),
        ("below", pa.float64()),
        ("above", pa.float64()),
        ("teaches", pa.bool_()),
        ("finite", pa.bool_()),
    ]
)
"""Of a `LessonRecord`: a row per learner and rollout of a step."""


def to_table(records: Sequence[object], schema: Any) -> Any:
    """An Arrow table with a row for each record, and its fields named in the schema as columns."""
    columns = [
        pa.array([getattr(record, field.name) for record in records], field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def from_table(table: Any, kind: Callable[..., T]) -> list[T]:
    """The records of a table that `to_table` made.

    Args:
        kind: takes the columns in their order, which is that of the fields of its class.
    """
    return list(itertools.starmap(kind, zip(*(c.to_pylist() for c in table.columns), strict=True)))

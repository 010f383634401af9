"""Records as Arrow columns, the form in which they travel between processes.

A column is one buffer, which the object store of a cluster hands to every reader of a machine
without a copy, while records would be pickled one by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from hacrl.records import Outcome, Pool, Prompt, Rollout, Verdict, Verified

__all__ = [
    "LESSONS",
    "PROMPTS",
    "ROLLOUTS",
    "PoolColumns",
    "from_columns",
    "from_table",
    "to_columns",
    "to_table",
]

T = TypeVar("T")

PROMPTS = pa.schema(
    [
        *((name, pa.string()) for name in ("id", "task", "text", "gold", "system")),
        ("history", pa.list_(pa.list_(pa.string()))),
    ]
)
"""Metadata and alternatives stay behind: they are for verifiers."""

ROLLOUTS = pa.schema(
    [
        ("prompt", pa.int32()),
        ("agent", pa.string()),
        ("sample", pa.int32()),
        ("policy_version", pa.int64()),
        ("text", pa.string()),
        ("token_ids", pa.large_list(pa.int32())),
        ("token_logprobs", pa.large_list(pa.float64())),
        ("finished", pa.bool_()),
        ("unshareable", pa.string()),
    ]
)

_VERDICTS = pa.schema([("reward", pa.float64()), ("outcome", pa.string()), ("answer", pa.string())])

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


@dataclass(frozen=True, slots=True)
class PoolColumns:
    """A `Pool` in columns: `prompts` as in `PROMPTS`, `rows` as in `ROLLOUTS` with the verdicts."""

    step: int
    agents: tuple[str, ...]
    group_size: int
    prompts: Any
    rows: Any


def to_table(records: Sequence[object], schema: Any) -> Any:
    """An Arrow table with a row for each record, and its fields named in the schema as columns."""
    return pa.table(
        [
            _column([getattr(record, field.name) for record in records], field.type)
            for field in schema
        ],
        schema=schema,
    )


def from_table(table: Any, kind: Callable[..., T]) -> list[T]:
    """The records of a table that `to_table` made.

    Args:
        kind: takes the columns in their order, which is that of the fields of its class.
    """
    columns = [_values(column.combine_chunks()) for column in table.columns]
    return list(itertools.starmap(kind, zip(*columns, strict=True)))


def to_columns(pool: Pool) -> PoolColumns:
    """A pool as columns, but for the metadata of its prompts."""
    rollouts = to_table([row.rollout for row in pool.rows], ROLLOUTS)
    verdicts = to_table([row.verdict for row in pool.rows], _VERDICTS)
    return PoolColumns(
        pool.step,
        pool.agents,
        pool.group_size,
        to_table(pool.prompts, PROMPTS),
        pa.table([*rollouts.columns, *verdicts.columns], [*ROLLOUTS.names, *_VERDICTS.names]),
    )


def from_columns(columns: PoolColumns) -> Pool:
    """The pool of which `to_columns` made the columns."""
    rollouts = from_table(columns.rows.select(ROLLOUTS.names), Rollout)
    verdicts = from_table(columns.rows.select(_VERDICTS.names), _verdict)
    return Pool(
        step=columns.step,
        agents=columns.agents,
        prompts=tuple(from_table(columns.prompts, Prompt)),
        group_size=columns.group_size,
        rows=tuple(Verified(*row) for row in zip(rollouts, verdicts, strict=True)),
    )


def _verdict(reward: float | None, outcome: str, answer: str | None) -> Verdict:
    return Verdict(reward, Outcome(outcome), answer)


def _column(values: list[Any], kind: Any) -> Any:
    if not pa.types.is_large_list(kind):
        return pa.array(values, kind)
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int64)
    flat = np.fromiter(
        itertools.chain.from_iterable(values), kind.value_type.to_pandas_dtype(), offsets[-1]
    )
    return pa.LargeListArray.from_arrays(offsets, flat)


def _values(array: Any) -> list[Any]:
    if not pa.types.is_large_list(array.type):
        return array.to_pylist()  # type: ignore[no-any-return]
    flat = tuple(array.values.to_numpy().tolist())
    return [flat[a:b] for a, b in itertools.pairwise(array.offsets.to_numpy().tolist())]

"""The pool of a step as columns, the form in which it goes to learners in other processes.

Of a rollout cross its text, its length, the sum of its log-probabilities and how it ended; token
ids and their log-probabilities stay with the agent that drew them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hacrl.columns import PROMPTS, ROLLOUTS, VERDICTS, from_table, to_table
from hacrl.records import Outcome, Pool, Prompt, Rollout, Verdict, Verified

__all__ = ["PoolColumns", "from_columns", "to_columns"]

_SHARED = pa.schema([VERDICTS.field("reward"), VERDICTS.field("outcome")])
"""The answer that a verifier found is of no use to a learner."""


@dataclass(frozen=True, slots=True)
class PoolColumns:
    """A `Pool` in columns: `prompts` as in `PROMPTS`, `rows` as in `ROLLOUTS` with the verdicts."""

    step: int
    agents: tuple[str, ...]
    group_size: int
    prompts: Any
    rows: Any


def to_columns(pool: Pool) -> PoolColumns:
    """A pool as columns, but for the metadata of its prompts and the answers that were found."""
    rollouts = to_table([row.rollout for row in pool.rows], ROLLOUTS)
    verdicts = to_table([row.verdict for row in pool.rows], _SHARED)
    return PoolColumns(
        pool.step,
        pool.agents,
        pool.group_size,
        to_table(pool.prompts, PROMPTS),
        pa.table([*rollouts.columns, *verdicts.columns], [*ROLLOUTS.names, *_SHARED.names]),
    )


def from_columns(columns: PoolColumns) -> Pool:
    """The pool of which `to_columns` made the columns."""
    rollouts = from_table(columns.rows.select(ROLLOUTS.names), Rollout)
    verdicts = from_table(columns.rows.select(_SHARED.names), _verdict)
    return Pool(
        step=columns.step,
        agents=columns.agents,
        prompts=tuple(from_table(columns.prompts, Prompt)),
        group_size=columns.group_size,
        rows=tuple(Verified(*row) for row in zip(rollouts, verdicts, strict=True)),
    )


def _verdict(reward: float | None, outcome: str) -> Verdict:
    return Verdict(reward, Outcome(outcome))

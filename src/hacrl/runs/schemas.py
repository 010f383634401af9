"""Columns of the Parquet files of a run, the same in every step: what `hacrl.columns` has of each
record, with its place in the run."""

from __future__ import annotations

import pyarrow as pa

from hacrl.columns import LESSONS, ROLLOUTS, VERDICTS

__all__ = ["ANSWERS", "FAULTS", "TAUGHT", "VERIFIED"]

_TEXT, _NUMBER, _FLAG = pa.string(), pa.float64(), pa.bool_()

_OF_PROMPT = (("prompt_id", _TEXT), ("prompt_text", _TEXT))

VERIFIED = pa.schema([("step", pa.int64()), *_OF_PROMPT, ("gold", _TEXT), *ROLLOUTS, *VERDICTS])
"""A row per verified rollout of a step; see `Rollout`, `Prompt` and `Verdict`."""

TAUGHT = pa.schema([("step", pa.int64()), *LESSONS])
"""A row per learner and rollout of a step; see `LessonRecord`."""

FAULTS = pa.schema([*TAUGHT, *_OF_PROMPT, ("text", _TEXT), VERDICTS.field("reward")])
"""A row per lesson of the updates that were skipped in a step, with its rollout."""

ANSWERS = pa.schema(
    [
        ("problem", _TEXT),
        ("sample", pa.int32()),
        ("prompt", _TEXT),
        ("gold", _TEXT),
        ("response", _TEXT),
        ("tokens", pa.int32()),
        ("finished", _FLAG),
        ("too_long", _FLAG),
        ("reward", _NUMBER),
        ("outcome", _TEXT),
        ("answer", _TEXT),
    ]
)
"""A row per answer to a held-out problem or a benchmark; see `hacrl.evaluation.answers.Answer`."""

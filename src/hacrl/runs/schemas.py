"""Columns of the Parquet files of a run, the same in every step.

Without a schema, a column that holds nothing but gaps in one step would have another type there,
and the files of a run could not be read as one table.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["ANSWERS", "FAULTS", "LESSONS", "ROLLOUTS"]

_TEXT, _WHOLE, _NUMBER, _FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()

ROLLOUTS = pa.schema(
    [
        ("step", _WHOLE),
        ("prompt_id", _TEXT),
        ("prompt_text", _TEXT),
        ("gold", _TEXT),
        ("prompt", _WHOLE),
        ("agent", _TEXT),
        ("sample", _WHOLE),
        ("policy_version", _WHOLE),
        ("text", _TEXT),
        ("token_ids", pa.list_(_WHOLE)),
        ("token_logprobs", pa.list_(_NUMBER)),
        ("finished", _FLAG),
        ("unshareable", _TEXT),
        ("logprob", _NUMBER),
        ("length", _WHOLE),
        ("reward", _NUMBER),
        ("outcome", _TEXT),
        ("answer", _TEXT),
    ]
)
"""A row per verified rollout of a step; see `Rollout`, `Prompt` and `Verdict`."""

LESSONS = pa.schema(
    [
        ("learner", _TEXT),
        ("agent", _TEXT),
        ("prompt", _WHOLE),
        ("sample", _WHOLE),
        ("advantage", _NUMBER),
        ("tokens", _WHOLE),
        ("left_out", _TEXT),
        ("update", _WHOLE),
        ("log_ratio", _NUMBER),
        ("below", _NUMBER),
        ("above", _NUMBER),
        ("teaches", _FLAG),
        ("finite", _FLAG),
    ]
)
"""A row per learner and rollout of a step; see `LessonRecord`."""

FAULTS = pa.schema(
    [
        *LESSONS,
        ("prompt_id", _TEXT),
        ("prompt_text", _TEXT),
        ("text", _TEXT),
        ("token_ids", pa.list_(_WHOLE)),
        ("token_logprobs", pa.list_(_NUMBER)),
        ("reward", _NUMBER),
    ]
)
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

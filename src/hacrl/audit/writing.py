"""Every verdict of an audit as a line of JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from hacrl.audit.tries import Audited, Tried
from hacrl.errors import UserError
from hacrl.records import Prompt, Verdict

__all__ = ["write_verdicts"]


def write_verdicts(rows: Sequence[Audited], path: Path, tried: Sequence[Tried] = ()) -> None:
    """One JSON object per response; generated ones also have their `kind` and what is `expected`.

    Raises:
        UserError: the file cannot be written.
    """
    try:
        with path.open("w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(_content(row.prompt, row.response, row.verdict)) + "\n")
            for variation in tried:
                content = _content(variation.prompt, variation.attempt.response, variation.verdict)
                content |= {
                    "kind": variation.attempt.kind,
                    "expected": str(variation.attempt.expected),
                }
                file.write(json.dumps(content) + "\n")
    except OSError as error:
        raise UserError(f"--out {path}: cannot be written: {error.strerror}") from error


def _content(prompt: Prompt, response: str, verdict: Verdict) -> dict[str, object]:
    return {
        "prompt_id": prompt.id,
        "task": prompt.task,
        "outcome": verdict.outcome,
        "reward": verdict.reward,
        "answer": verdict.answer,
        "gold": prompt.gold,
        "response": response,
    }

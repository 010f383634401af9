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
    """One JSON object per response; made up ones also have their `kind` and what is `expected`.

    Raises:
        UserError: the file cannot be written.
    """
    try:
        with path.open("w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(_content(row.prompt, row.response, row.verdict)) + "\n")
            for one in tried:
                content = _content(one.prompt, one.one.response, one.verdict)
                content |= {"kind": one.one.kind, "expected": str(one.one.expected)}
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

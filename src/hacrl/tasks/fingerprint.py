"""A fingerprint that is equal where two runs learn from the same prompts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import date

from hacrl.records import Prompt

__all__ = ["fingerprint"]


def fingerprint(prompts: Iterable[Prompt]) -> str:
    """SHA-256 over the prompts in their order: ids, texts and turns, reference answers and
    metadata.

    A checkpoint keeps it instead of the data, so that changed data are noticed and corrected data
    are used.
    """
    digest = hashlib.sha256()
    for prompt in prompts:
        # JSON marks where each part ends, and spells lone surrogates in ASCII.
        parts: list[object] = [prompt.id, prompt.task, prompt.system, prompt.text, prompt.gold]
        if prompt.history or prompt.alternatives:  # else as it was before there were any
            parts += [prompt.history, prompt.alternatives]
        row = json.dumps([*parts, *_plain(prompt.metadata)])
        digest.update(row.encode() + b"\n")
    return digest.hexdigest()


def _plain(metadata: Mapping[str, object]) -> list[str]:
    """Metadata that come from a file. What generators leave may look different every time."""
    try:
        return [json.dumps(dict(metadata), default=_moment)] if metadata else []
    except (TypeError, ValueError):
        return []


def _moment(value: object) -> str:
    if isinstance(value, date):  # a datetime is one as well
        return value.isoformat()
    raise TypeError(type(value).__name__)

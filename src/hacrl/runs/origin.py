"""Where the problems of a task come from, in a few words for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["origin"]


def origin(source: Mapping[str, Any]) -> str:
    """The kind and the place of a source, such as `hub openai/gsm8k (main, train)`.

    Args:
        source: as in a recipe, or empty.
    """
    generators = source.get("generators") or {}
    named = [source.get("id"), source.get("name"), ", ".join(generators), source.get("path")]
    details = [source.get(key) for key in ("config", "split", "revision", "key")]
    texts = [str(detail) for detail in details if detail and isinstance(detail, str)]
    if source.get("limit"):
        texts.append(f"the first {source['limit']:,}")
    if source.get("type") == "reasoning_gym":
        texts.append(f"{source.get('size', 0):,} problems, seed {source.get('seed', 0)}")
    words = [str(source.get("type") or ""), *(str(detail) for detail in named if detail)]
    return " ".join([*words, *([f"({', '.join(texts)})"] if texts else [])]).strip()

"""Versions of what decides the numbers of a run."""

from __future__ import annotations

from importlib.metadata import version

__all__ = ["library_versions"]


def library_versions() -> dict[str, str]:
    """By the name of the distribution."""
    return {name: version(name) for name in ("hacrl", "torch", "transformers", "peft")}

"""Reward functions with known faults."""

from __future__ import annotations

from hacrl.records import Prompt


def pays_all(prompt: Prompt, response: str) -> bool:
    return True


def pays_none(prompt: Prompt, response: str) -> bool:
    return False

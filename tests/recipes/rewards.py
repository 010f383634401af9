"""Reward functions of a user's."""

from __future__ import annotations

from hacrl.records import Prompt


def score(prompt: Prompt, response: str) -> float:
    return float(response.count("1") % 2)


def length(prompt: Prompt, response: str) -> float:
    """Never nothing, so that capabilities are ratios of what agents get."""
    return 0.5 + len(response)


def is_one(prompt: Prompt, response: str) -> bool:
    return "1" in response


def half(prompt: Prompt, response: str) -> float:
    return 0.5


def below(prompt: Prompt, response: str) -> float:
    return -0.5


def narrow(prompt: Prompt, response: str) -> float:
    """About the same for all, however capable they are elsewhere."""
    return 1.0 + 1e-3 * score(prompt, response)

"""A reward function of a user's."""

from __future__ import annotations

from hacrl.records import Prompt


def score(prompt: Prompt, response: str) -> float:
    return float(len(response) % 2)


def scores(prompts: list[Prompt], responses: list[str]) -> list[float]:
    return [score(*pair) for pair in zip(prompts, responses, strict=True)]

"""Changes of single characters of a text. What they come to is for the caller to judge."""

from __future__ import annotations

import random
import re

__all__ = ["digit_changed", "digits_exchanged", "letters_exchanged", "with_digit"]

_SIGNIFICANT = 4
"""Digits of a number inside a formula of which one may change: more would near the tolerance."""
_TOKENS = re.compile(r"\\[A-Za-z]+|\d+(?:\.\d+)?|.", re.DOTALL)


def with_digit(text: str, place: int, digit: int) -> str:
    return f"{text[:place]}{digit}{text[place + 1 :]}"


def digit_changed(text: str, draw: random.Random) -> str | None:
    """A text with a leading digit of one of its numbers changed; None if there is none to change.

    Commands, names and indices of what is no number are left alone.
    """
    places: list[int] = []
    position = 0
    for token in _TOKENS.findall(text):
        if token[0].isdigit():
            digits = [i for i, c in enumerate(token) if c.isdigit()]
            places += [position + i for i in digits[:_SIGNIFICANT]]
        position += len(token)
    if not places:
        return None
    place = draw.choice(places)
    # Never 0: what stands beside it would be nothing.
    return with_digit(text, place, draw.choice([n for n in range(1, 10) if str(n) != text[place]]))


def letters_exchanged(text: str, draw: random.Random) -> str | None:
    """A text with two letters exchanged that differ in more than case; None if there are none."""
    pairs = [
        (i, j)
        for i in range(min(len(text), 40))
        for j in range(i + 1, min(len(text), 40))
        if text[i].isalpha() and text[j].isalpha() and text[i].lower() != text[j].lower()
    ]
    if not pairs:
        return None
    i, j = draw.choice(pairs)
    return f"{text[:i]}{text[j]}{text[i + 1 : j]}{text[i]}{text[j + 1 :]}"


def digits_exchanged(text: str, draw: random.Random) -> str | None:
    places = [i for i, c in enumerate(text) if c.isdigit()]
    pairs = [(i, j) for i in places for j in places if i < j and text[i] != text[j]]
    if not pairs:
        return None
    i, j = draw.choice(pairs)
    return f"{text[:i]}{text[j]}{text[i + 1 : j]}{text[i]}{text[j + 1 :]}"

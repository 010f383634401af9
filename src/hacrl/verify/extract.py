r"""Where the answer of a text stands: one rule for responses and for gold texts.

The rule, in this order:

1. Only the response is read, never the prompt.
2. If it contains `</think>`, only what follows the last one is read. A `<think>` that is not
   closed afterwards means that the reasoning was cut: no answer.
3. The content of the complete, non-empty `\boxed{…}` or `\fbox{…}` that is closed last. Braces
   nest; `\{` and `\}` are text. An empty or an unclosed box counts as no box at all.
4. Else what follows the last marker (such as `####`), up to the end of that line. The answer may
   stand on the line below the marker.
5. Else the last number, where the caller allows it.
6. Else there is no answer.

Everything here is pure and takes time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections import deque

__all__ = ["after_reasoning", "extract_answer", "extract_gold", "whole_answer"]

_THINK, _END_THINK = "<think>", "</think>"
_TOKEN = re.compile(r"(?P<box>\\(?:boxed|fbox)\s{0,3}\{)|\\.|(?P<open>\{)|(?P<close>\})", re.DOTALL)
_NUMBER = re.compile(r"(?:(?<![\w.)])[-+−])?(?:\d+(?:,\d+)*(?:\.\d+)?|\.\d+)(?:/\d+)?")


def extract_answer(text: str, marker: str | None, last_number: bool = False) -> str | None:
    """The answer of a response, stripped; None if there is none.

    Args:
        text: the response alone, of any length.
        marker: text after which the answer stands; None for no marker.
        last_number: whether the last number is taken where there is neither box nor marker.
    """
    visible = after_reasoning(text)
    if visible is None:
        return None
    return (
        _last_box(visible)
        or (_after_marker(visible, marker) if marker else None)
        or (_last_number(visible) if last_number else None)
    )


def extract_gold(text: str, marker: str | None) -> str:
    """The gold answer: found by the same rule, or the whole text if it is an answer by itself."""
    return extract_answer(text, marker) or text.strip()


def whole_answer(text: str, marker: str | None) -> str:
    """The answer by the rule; without a marker, all that follows the reasoning. May be empty."""
    if marker is None:
        return (after_reasoning(text) or "").strip()
    return extract_answer(text, marker) or ""


def after_reasoning(text: str) -> str | None:
    """What follows the end of the reasoning, all if there is none; None if it was cut."""
    end = text.rfind(_END_THINK)
    if text.find(_THINK, max(end, 0)) >= 0:
        return None
    return text if end < 0 else text[end + len(_END_THINK) :]


def _last_box(text: str) -> str | None:
    opened: list[int | None] = []  # where the content of each open brace starts; None: no box
    found = None
    filled = -1  # end of the last stretch seen so far that is more than white space and braces
    position = 0
    for token in _TOKEN.finditer(text):
        # Each stretch between two tokens is looked at once, which keeps nested boxes linear.
        if text[position : token.start()].strip():
            filled = token.start()
        position = token.end()
        if token["box"]:
            opened.append(token.end())
        elif token["open"]:
            opened.append(None)
        elif not token["close"]:
            filled = token.end()
        elif opened:
            start = opened.pop()
            if start is not None and filled > start:
                found = start, token.start()
    return text[slice(*found)].strip() if found else None


def _after_marker(text: str, marker: str) -> str | None:
    _, found, rest = text.rpartition(marker)
    lines = rest.strip().splitlines()
    return lines[0].strip() or None if found and lines else None


def _last_number(text: str) -> str | None:
    last = deque(_NUMBER.finditer(text), maxlen=1)
    return last[0].group() if last else None

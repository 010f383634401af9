r"""Where the answer of a text stands: one rule for responses and for reference texts.

The rule, in this order:

1. Only the response is read, never the prompt; what its prompt opened is part of the response.
2. Only what follows the end of its reasoning is read (see `reasoning`). Reasoning that is not
   closed was cut: no answer.
3. The content of the complete, non-empty `\boxed{…}` or `\fbox{…}` that is closed last. Braces
   nest; `\{` and `\}` are text. An empty or an unclosed box counts as no box at all. Without
   braces a box holds the number, the command or the single letter behind it: `\boxed 42`.
4. Else what follows the last marker (such as `####`) that something follows, up to the end of that
   line or, if it is no more than a heading (`#### Final Answer`), the next line that holds
   something. See `lines` for what is no part of it: markup, a label, a separate sentence.
5. Else the last number, where the caller allows it.
6. Else there is no answer.

A label (`Answer: 42`, `The answer is 42`) is dropped in all of these. Everything here is pure and
takes time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections import deque

from hacrl.verify.lines import after_marker, without_label
from hacrl.verify.reasoning import after_reasoning

__all__ = ["after_reasoning", "extract_answer", "extract_gold", "whole_answer"]

_TOKEN = re.compile(
    r"\\(?:(?P<box>(?:boxed|fbox)\s{0,3}\{)"
    r"|(?:boxed|fbox)(?P<bare>\s{0,3}[-+−]?[\d.][^\s$\\{}]*"
    r"|\s{1,3}[-+−]?\\[A-Za-z]+(?:\{[^{}$\n]{0,200}\}|\d){0,3}|\s{1,3}[A-Za-z](?![A-Za-z]))"
    r"|.)|\{|\}",
    re.DOTALL,
)
"""Each alternative begins with one character, without a group: what lies between two tokens is then
skipped several times as fast, which counts in long responses."""
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
        or (after_marker(visible, marker) if marker else None)
        or (_last_number(visible) if last_number else None)
    )


def extract_gold(text: str, marker: str | None) -> str:
    """The reference answer: extracted by the same rule, or the whole text."""
    return extract_answer(text, marker) or without_label(text.strip())


def whole_answer(text: str, marker: str | None) -> str:
    """The answer by the rule; without a marker, all that follows the reasoning. May be empty."""
    if marker is None:
        return (after_reasoning(text) or "").strip()
    return extract_answer(text, marker) or ""


def _last_box(text: str) -> str | None:
    opened: list[int | None] = []  # where the content of each open brace starts; None: no box
    span = None
    filled = -1  # end of the last stretch seen so far that is more than white space and braces
    position = 0
    for token in _TOKEN.finditer(text):
        # Each stretch between two tokens is looked at once, which keeps nested boxes linear.
        if text[position : token.start()].strip():
            filled = token.start()
        position = token.end()
        if token["box"]:
            opened.append(token.end())
        elif token[0] == "{":
            opened.append(None)
        elif token["bare"]:
            filled = token.end()
            span = token.start("bare"), token.end() - _stops(token["bare"])
        elif token[0] != "}":
            filled = token.end()
        elif opened:
            start = opened.pop()
            if start is not None and filled > start:
                span = start, token.start()
    return without_label(text[slice(*span)].strip()) if span else None


def _stops(text: str) -> int:
    """Characters at the end that belong to the sentence around a number."""
    return len(text) - len(text.rstrip(".,;:!?)*_"))


def _last_number(text: str) -> str | None:
    last = deque(_NUMBER.finditer(text), maxlen=1)
    return last[0].group() if last else None

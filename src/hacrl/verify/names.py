r"""Answers that give values to names: `x=5`, `f(x)=2x`, `\frac{dy}{dx}=3x`, `x=1, y=2`."""

from __future__ import annotations

import re

__all__ = ["named_values", "split_list"]

_LETTER = r"(?:[A-Za-z]|\\(?!frac|sqrt|sin|cos|tan|ln|log|exp|pi(?![A-Za-z]))[A-Za-z]+)"
_INDEX = r"(?:_\{[^{}]*\}|_[A-Za-z0-9]|\^\{\([^{}]*\)\})"
_ARGUMENTS = r"\([^<>]*\)"
_DERIVATIVE = (
    r"\\[dt]?frac\s*\{\s*(?:d|\\partial)[^{}]*(?:\{[^{}]*\})?[^{}]*\}"
    r"\s*\{\s*(?:d|\\partial)[^{}]*(?:\{[^{}]*\})?[^{}]*\}|d[a-z]/d[a-z]"
)
_NAME = re.compile(rf"(?:{_DERIVATIVE}|{_LETTER}\s*{_INDEX}*)\s*(?:{_ARGUMENTS})?")
_SPACE = re.compile(r"\\[,;:! ]|~|\s+|\\(?:left|right)(?![A-Za-z])")
_OTHER_RELATIONS = re.compile(r"[<>]|\\(?:leq?|geq?|lt|gt|neq?|equiv|approx)(?![A-Za-z])|[!:=]=")
_OPEN, _CLOSE = "([{", ")]}"


def named_values(text: str) -> list[tuple[str, str]] | None:
    """The names in a normalized text and the text of the value of each, in order of appearance.

    None unless the whole is one definition or a list of them. A chain (`x=2+3=5`) gives the last.
    """
    values = []
    for part in split_list(text):
        sides = _split(part, "=")
        name = sides[0].strip()
        if len(sides) < 2 or not _NAME.fullmatch(name) or not all(s.strip() for s in sides):
            return None
        if _OTHER_RELATIONS.search(part):
            return None
        values.append((_SPACE.sub("", name).replace("dfrac", "frac"), sides[-1].strip()))
    return values


def split_list(text: str) -> list[str]:
    """A text at the commas and semicolons that are in no bracket."""
    return _split(text, ",;")


def _split(text: str, separators: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth -= 1
        elif character in separators and depth <= 0 and text[position - 1 : position] != "\\":
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]

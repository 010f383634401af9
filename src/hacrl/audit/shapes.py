r"""What kind of thing a mathematical reference answer is, as far as its spelling shows.

The kind decides which other spellings mean the same and which changes make it wrong. What is not
recognized for certain is a formula, the kind about which least is assumed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

__all__ = ["Gold", "Shape", "decimal_text", "read_gold", "split_top"]


class Shape(StrEnum):
    """The kinds of reference answers."""

    NUMBER = "number"
    FRACTION = "fraction"
    UNIT = "number with a unit"
    OPTION = "option letter"
    WORDS = "words"
    TUPLE = "tuple or interval"
    SET = "set"
    LIST = "list"
    EQUATION = "equation"
    FORMULA = "formula"


@dataclass(frozen=True, slots=True)
class Gold:
    """A reference answer with its kind.

    Args:
        text: as it stands, without dollar signs around it and a final full stop.
        value: of a number, a fraction, or the number before a unit; else None.
        parts: the elements of a tuple, set or list; the sides of an equation; number and unit;
            else empty.
        brackets: what encloses a tuple, an interval or a set; else empty.
    """

    text: str
    shape: Shape
    value: Fraction | None = None
    parts: tuple[str, ...] = ()
    brackets: tuple[str, str] | None = None


_NUMBER = re.compile(
    r"[-+−]?(?:\d{1,3}(?:(?:,\s?(?:\\!)?\s?|\{,\}|\\,|\\!,)\d{3})+|\d+)(?:\.\d+)?|[-+−]?\.\d+"
)
_FRACTION = re.compile(
    r"(?P<sign>[-−]?)\s?(?:\\[dt]?frac\s?(?:\{(?P<a>\d+)\}\s?\{(?P<b>\d+)\}"
    r"|(?P<c>\d)\s?(?P<d>\d)|\{(?P<e>\d+)\}(?P<f>\d)|(?P<g>\d)\{(?P<h>\d+)\})"
    r"|(?P<i>\d+)\s?/\s?(?P<j>\d+))"
)
_UNIT = re.compile(
    r"(?P<number>(?:\\?\$)?[-−]?\d[\d,.]*\d|(?:\\?\$)?[-−]?\d)\s?(?:\\[,; ]|~)?\s?(?P<unit>"
    r"\\(?:text|mathrm|mbox|textrm)\s?\{[^{}]*[A-Za-z][^{}]*\}(?:\^\{?\d\}?)?|\\?%|\^\{?\\circ\}?|°"
    r"|(?:\\ )?[A-Za-z]{2,12}(?:\s[a-z]{2,12}){0,2})"
)
_OPTION = re.compile(
    r"\\(?:text|textbf|mathrm|mathbf)\s?\{\s?\(?(?P<wrapped>[A-H])\)?\s?\}"
    r"|\((?P<round>[A-H])\)|(?P<alone>[A-E])"
)
_WRAPPER = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox)\s?\{([^{}\\]*)\}")
_WORDS = re.compile(r"[^\W\d_]{2,}(?:[ '’-][^\W\d_]+){0,7}")
_BRACKETS = {"(": ")", "[": "]", r"\{": r"\}", r"\left(": r"\right)", r"\left[": r"\right]"}


def read_gold(text: str) -> Gold:
    """The kind of a reference answer."""
    text = _stripped(text)
    if (value := _number(text)) is not None:
        return Gold(text, Shape.NUMBER, value)
    if (value := _fraction(text)) is not None:
        return Gold(text, Shape.FRACTION, value)
    if match := _OPTION.fullmatch(text):
        return Gold(
            text, Shape.OPTION, parts=(match["wrapped"] or match["round"] or match["alone"],)
        )
    if _WORDS.fullmatch(_WRAPPER.sub(r"\1", text).strip()):
        return Gold(text, Shape.WORDS)
    if (match := _UNIT.fullmatch(text)) and (value := _number(match["number"])) is not None:
        return Gold(text, Shape.UNIT, value, (match["number"], match["unit"]))
    if enclosed := _enclosed(text):
        left, inner, right = enclosed
        parts = split_top(inner)
        if left.endswith("{"):
            return Gold(text, Shape.SET, parts=parts, brackets=(left, right))
        if len(parts) > 1:
            return Gold(text, Shape.TUPLE, parts=parts, brackets=(left, right))
    parts = split_top(text)
    if len(parts) > 1 and all(parts):
        return Gold(text, Shape.LIST, parts=parts)
    sides = re.split(r"(?<![<>!:\\])=(?!=)", text)
    if len(sides) == 2 and all(side.strip() for side in sides):
        return Gold(text, Shape.EQUATION, parts=(sides[0].strip(), sides[1].strip()))
    return Gold(text, Shape.FORMULA)


def split_top(text: str) -> tuple[str, ...]:
    """The parts of a text between the commas that stand in no bracket."""
    parts, depth, start = [], 0, 0
    text = text.replace("{,}", "\0\0\0")
    for i, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0 and not re.match(r",\d{3}(?!\d)", text[i:]):
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return tuple(part.replace("\0\0\0", "{,}").strip() for part in parts)


def decimal_text(value: Fraction) -> str:
    """A fraction whose denominator has no other prime factors than 2 and 5, written out."""
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
    digits = str(abs((value * 10**places).numerator)).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"


def _stripped(text: str) -> str:
    before = None
    text = text.strip()
    while text != before:
        before = text
        text = text.rstrip(".").strip() if not text.endswith("..") else text
        if len(text) > 2 and text[0] == text[-1] == "$" and "$" not in text[1:-1]:
            text = text[1:-1].strip()
    return text


def _number(text: str) -> Fraction | None:
    text = re.sub(r"^([-+−]?)\\?\$", r"\1", text)
    if not _NUMBER.fullmatch(text):
        return None
    return Fraction(re.sub(r",|\{|\}|\s|\\[,!]", "", text).replace("−", "-"))


def _fraction(text: str) -> Fraction | None:
    match = _FRACTION.fullmatch(text)
    if match is None:
        return None
    above, below = (int(n) for n in match.groups()[1:] if n is not None)
    if below == 0:
        return None
    return Fraction(-above if match["sign"] else above, below)


def _enclosed(text: str) -> tuple[str, str, str] | None:
    """Left bracket, inside and right bracket, if one pair of brackets encloses all of the text."""
    lefts = sorted([*_BRACKETS, r"\left\{"], key=len, reverse=True)
    rights = sorted([*_BRACKETS.values(), r"\right\}"], key=len, reverse=True)
    left = next((b for b in lefts if text.startswith(b)), None)
    right = next((b for b in rights if text.endswith(b)), None)
    if left is None or right is None or left.startswith(r"\left") != right.startswith(r"\right"):
        return None
    if left.endswith("{") != right.endswith("}"):
        return None
    inner = text[len(left) : -len(right)]
    depth = 0
    for character in inner:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            return None
    return (left, inner, right) if depth == 0 and inner.strip() else None

r"""Quantities: a value and what it is a number of.

A unit is what is known to be one: a unit of measurement that Pint knows, a currency, or a plural
noun (`42 apples`). Words that count, multiply, order, compare or compute are never units; of these
the first two change the value (`1.5 million`, `3 fifths`), and the rest leave no quantity at all.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import pint

from hacrl.verify.numerals import is_number_word, spelled_number, word_value

__all__ = ["Quantity", "read_quantity", "scale"]

_MAX_UNIT = 60
"""Characters of a unit."""
_NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)"
_VALUE = rf"{_NUMBER}(?:(?: \d+)?/\d+|(?: ?\\times ?10\^(?:\{{-?\d+\}}|-?\d)))?"
_CURRENCY_BEFORE = re.compile(
    r"(?P<sign>[-+]?)\s?(?P<unit>\\?\$|[€£¥₹]|\\text\{\$\}|\\pounds|\\euro)\s?(?P<value>[-+]?[\d.].*)"
)
_PLAIN = re.compile(rf"(?P<value>{_VALUE}|[A-Za-z]+(?:-[a-z]+)?(?= ))(?P<unit>\s*\S.*)")
_TEXT = r"\\(?:text|textrm|textup|mathrm|mbox|rm|operatorname)\s*\{"
_LATEX = re.compile(rf"(?P<value>.*?[^\s_^{{(,=])\s*(?:\\[,;:! ]|~|\s)*(?P<unit>{_TEXT}.*)")
_DEGREES = re.compile(r"(?P<value>.*\d)\s*\^\s*\{?\s*\\(?:circ|degree)\s*\}?\s*(?P<scale>[CF]?)")
_COMPOUND = re.compile(
    rf"(?P<first>{_NUMBER} ?[A-Za-z]+),?(?: and)? (?P<second>{_NUMBER} ?[A-Za-z]+)"
)
_UNWRAPPED = re.compile(_TEXT + r"([^{}]*)\}")
_SPACING = re.compile(r"\\[,;:! ]|~|\s+")
_WORD = re.compile(r"[A-Za-z]+")
_AREA = re.compile(r"(?:square|sq\.?|cubic|cu\.?) [A-Za-z]+")
_TIME_OF_DAY = re.compile(r"(?i)\b[ap]\.? ?m\b")
_WORDS = re.compile(r"[A-Za-z]+(?:[ -][A-Za-z]+){0,4}")
_FACTOR = r"[A-Za-z_]+(?:\s?\^\s?\{?-?\d{1,2}\}?)?"
_PRODUCT = re.compile(rf"{_FACTOR}(?:(?: ?[*/] ?| ){_FACTOR})*")
_FRACTION = re.compile(r"\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_NEVER = frozenset([
    "and", "or", "not", "no", "nor", "but", "than", "if", "then", "of", "to", "from",
    "by", "in", "on", "at", "as", "is", "are", "was", "has", "its", "this", "less", "more",
    "fewer", "greater", "least", "most", "exactly", "about", "approximately", "above", "below",
    "over", "under", "up", "between", "times", "plus", "minus", "divided", "multiplied",
    "squared", "cubed", "square", "cube", "root", "power", "factorial", "mod", "modulo",
    "remainder", "repeating", "repeated", "recurring", "base", "percent", "percentage",
    "negative", "positive", "inverse", "reciprocal", "doubled", "tripled", "halved", "double",
    "triple", "twice", "thrice", "each", "every", "other", "others", "another", "else",
    "either", "neither", "both", "yes", "maybe", "perhaps", "percents", "powers", "negatives",
    "inverses", "reciprocals", "factorials", "doubles", "triples", "st", "nd", "rd", "th",
])  # fmt: skip
_SINGLE = frozenset("m s g h N J W V A K C F L l T H")
"""Letters that are units where they are written plainly, and then only beside other units."""
_AMBIGUOUS = frozenset({"M", "k", "B", "MM", "bn", "mn", "mil", "mils"})
"""Units that stand for thousands or millions as well."""
_IRREGULAR = frozenset(
    [
        "people",
        "children",
        "men",
        "women",
        "teeth",
        "mice",
        "geese",
        "fish",
        "sheep",
        "deer",
        "dice",
        "oxen",
        "pence",
    ]
)
_NAMES = {
    "\\$": "dollar", "$": "dollar", "€": "euro", "£": "sterling", "¥": "yen", "₹": "rupee",
    "\\pounds": "sterling", "\\euro": "euro", "°": "degree",
    "sq": "square", "cu": "cubic", "gm": "gram", "gms": "gram", "hrs": "hours", "secs": "seconds",
    "mins": "minutes", "yrs": "years", "lbs": "pounds", "Ohm": "ohm", "Ω": "ohm",
    "in": "inch", "units": "unit", "usd": "dollar", "USD": "dollar", "EUR": "euro",
    "degrees Celsius": "degC", "degree Celsius": "degC", "Celsius": "degC",
    "degrees Fahrenheit": "degF", "degree Fahrenheit": "degF", "Fahrenheit": "degF",
}  # fmt: skip
_COUNTED = "counted"
"""Dimension of plural nouns, each a separate kind."""


class Quantity(NamedTuple):
    """A value as normalized text, and its unit.

    Args:
        value: the text of the value.
        factor: what the value is to be multiplied by, for number words.
        unit: a unit of Pint's, or the noun that is counted; None if it is a bare number.
    """

    value: str
    factor: Fraction
    unit: str | None


@lru_cache(maxsize=1)
def _registry() -> pint.UnitRegistry[float]:
    registry: pint.UnitRegistry[float] = pint.UnitRegistry(on_redefinition="ignore")
    for name, definition in (
        ("dollar", "[currency_of_dollars]"), ("cent", "dollar / 100"),
        ("euro", "[currency_of_euros]"), ("sterling", "[currency_of_pounds]"),
        ("pence", "sterling / 100"), ("yen", "[currency_of_yen]"),
        ("rupee", "[currency_of_rupees]"), ("paise", "rupee / 100"), ("unit", "[unnamed_unit]"),
    ):  # fmt: skip
        registry.define(f"{name} = {definition}")
    return registry


def read_quantity(text: str, *, letters: bool = False) -> Quantity | None:
    r"""The value and the unit of a normalized text; None if it is no such thing, or may be another.

    Args:
        letters: whether a single letter is a unit wherever it can be one. Otherwise `5 m` is no
            quantity, since `m` may be a variable; `5\text{ m}` is five metres in any case.
    """
    if match := _CURRENCY_BEFORE.fullmatch(text):
        inner = read_quantity(match["sign"] + match["value"])
        if inner is None:
            return Quantity(match["sign"] + match["value"], Fraction(1), _NAMES[_sign(match)])
        return inner._replace(unit=_NAMES[_sign(match)]) if inner.unit is None else inner
    if match := _DEGREES.fullmatch(text):
        unit = {"C": "degC", "F": "degF"}.get(match["scale"], "degree")
        return Quantity(match["value"], Fraction(1), unit)
    if spelled := spelled_number(text):
        return Quantity(spelled, Fraction(1), None)
    if (match := _COMPOUND.fullmatch(text)) and (whole := _sum(match["first"], match["second"])):
        return whole
    for pattern, plainly in ((_PLAIN, True), (_LATEX, False)):
        match = pattern.fullmatch(text)
        if match and len(match["unit"]) <= _MAX_UNIT:
            value = spelled_number(match["value"]) or match["value"]
            if plainly and not value[-1].isdigit() and value[-1] not in ".}":
                continue
            whole = _with_unit(value, match["unit"], plainly=plainly and not letters)
            if whole is not None:
                return whole
    return None


def scale(gold: str, answer: str) -> float | None:
    """What a value in the unit of the answer is multiplied by to be one in the unit of the
    reference answer.

    None if the units do not measure the same. Temperatures with different zeros do not.
    """
    if gold == answer:
        return 1.0
    if gold.startswith(_COUNTED) or answer.startswith(_COUNTED):
        return None
    registry = _registry()
    try:
        return float(registry.Quantity(1.0, answer).to(gold).magnitude)
    except (pint.PintError, AttributeError):
        return None


def _with_unit(value: str, unit: str, *, plainly: bool) -> Quantity | None:
    text = unit
    while (inner := _UNWRAPPED.sub(r" \1 ", text)) != text:
        text = inner
    text = (
        _SPACING.sub(" ", _FRACTION.sub(r"\1/\2", text))
        .replace(r"\cdot", "*")
        .replace(r"\times", "*")
        .strip(" .")
    )
    factor = Fraction(1)
    while (first := _WORD.match(text)) and (times := word_value(first[0])) is not None:
        factor, text = factor * times, text[first.end() :].removeprefix(" of").strip()
    if not text or text in {"%", r"\%"}:
        return Quantity(f"{value}{text}", factor, None)
    name = _unit(text, spaced=unit[0].isspace(), plainly=plainly, is_one=value in {"1", "-1"})
    return None if name is None else Quantity(value, factor, name)


def _unit(text: str, *, spaced: bool, plainly: bool, is_one: bool) -> str | None:
    """A canonical name of the unit; None if it is none."""
    words = _WORD.findall(text)
    if _TIME_OF_DAY.search(text):
        return None
    ruled_out = any(word.lower() in _NEVER - {"in", "of"} for word in words)
    if ruled_out and not _AREA.fullmatch(text):
        return None
    if text in _AMBIGUOUS or any(is_number_word(word) for word in words):
        return None
    measured = _measured(text, spaced=spaced, plainly=plainly)
    if measured is not None:
        return measured
    if not _WORDS.fullmatch(text) or words[0].lower() == "of" or words[-1].lower() in _NEVER:
        return None
    counted = re.split(" per | of ", text.lower())[0]
    noun = _WORD.findall(counted)[-1]
    if noun in _IRREGULAR or (
        noun.endswith("s") and len(noun) > 3 and not noun.endswith(("ss", "us", "is"))
    ):
        return f"{_COUNTED} {noun.removesuffix('s')}"
    return f"{_COUNTED} {noun}" if is_one and len(noun) > 2 and noun.islower() else None


def _measured(text: str, *, spaced: bool, plainly: bool) -> str | None:
    if text in _NAMES:
        return _known(_NAMES[text])
    text = re.sub(r"(?i) ?\bper\b ?", "/", text.replace("sq.", "sq").replace("cu.", "cu"))
    if not _PRODUCT.fullmatch(text):
        return None
    names = _WORD.findall(text)
    single = [name for name in names if len(name) == 1]
    if plainly and single and not spaced:
        return None
    if plainly and len(single) == len(names) and (len(names) < 2 or not set(names) <= _SINGLE):
        return None
    text = re.sub(r"[{} ]+", " ", _WORD.sub(lambda word: _NAMES.get(word[0], word[0]), text))
    text = text.replace("^ ", "^").strip()
    return _known(text) or _known(text.lower())


def _known(text: str) -> str | None:
    """The name that Pint has for a unit, None if it has none."""
    try:
        return str(_registry().parse_units(text))
    except pint.PintError:
        return None


def _sum(first: str, second: str) -> Quantity | None:
    """Two quantities of one dimension, such as `3 hours 20 minutes`, in the unit of the first."""
    a, b = read_quantity(first), read_quantity(second)
    if a is None or b is None or a.unit is None or b.unit is None or a.unit == b.unit:
        return None
    times = scale(a.unit, b.unit)
    if times is None or times > 1:
        return None
    value = Fraction(a.value.replace(",", "")) + Fraction(b.value.replace(",", "")) * Fraction(
        times
    ).limit_denominator(10**6)
    return Quantity(f"{value.numerator}/{value.denominator}", Fraction(1), a.unit)


def _sign(match: re.Match[str]) -> str:
    return match["unit"] if match["unit"] in _NAMES else "$"

r"""Wrong answers near a mathematical reference answer.

Each is certain to differ from the reference answer: the value of a number or fraction is compared,
elements are compared as they are spelt, and what cannot be told (a factor that stands beside a
zero, a digit below the tolerance of decimals) is not changed. Each comes with the name of its kind.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from hacrl.audit.characters import digit_changed, digits_exchanged, letters_exchanged, with_digit
from hacrl.audit.shapes import Gold, Shape, decimal_text, read_gold

__all__ = ["LAST_DIGIT", "changes", "last_digit"]

LAST_DIGIT = "the last digit changed"

_MULTIPLIERS = ("thousand", "million", r"\text{ billion}", "dozen")
_COMPARISONS = ("<", ">", "x <", r"\geq")
_UNITS = {
    "cm": "m", "m": "cm", "km": "m", "mm": "cm", "inches": "feet", "feet": "yards", "miles": "feet",
    "units": "dozen", "hours": "minutes", "minutes": "hours", "seconds": "hours", "days": "weeks",
    "weeks": "days", "cents": "dollars", "dollars": "cents", "grams": "kilograms", "kg": "g",
    "g": "kg", "pounds": "ounces", "mph": "km/h",
}  # fmt: skip
_OPPOSITES = [
    ("yes", "no"), ("true", "false"), ("even", "odd"), ("east", "west"), ("north", "south"),
    ("left", "right"), ("increasing", "decreasing"), ("positive", "negative"), ("above", "below"),
    ("more", "less"), ("greater", "smaller"), ("convergent", "divergent"), ("odd", "even"),
]  # fmt: skip
_MAYBE_NOTHING = re.compile(  # what a change may not change the value of
    r"\\(?:sin|cos|tan|cot|sec|csc|lfloor|lceil|binom|equiv|pmod|bmod|mod|omega)(?![A-Za-z])"
    r"|\bi\^|-1\)\s?\^|"
    r"(?<![\d.])0(?![\d.])(?=\s*(?:\\cdot|\\times|\\frac|[A-Za-z({]))|\{0\}|\^\{?0|(?<![\d.])1\s?\^"
    r"|(?<![\d.])1\s?\}?\s?\)\s?\^|0!|1!"
)
_VARIABLE = re.compile(r"(?<![\\A-Za-z{_])[a-zA-Z](?![A-Za-z{])")
_FUNCTIONS = {r"\sin": r"\cos", r"\cos": r"\sin", r"\tan": r"\cot", r"\ln": r"\sin"}


def changes(gold: Gold, draw: random.Random) -> Iterator[tuple[str, str]]:
    """Kind and text of wrong answers, none twice.

    Args:
        draw: chooses the place of a change where there are several.
    """
    seen = {gold.text}
    for kind, text in _OF_SHAPE[gold.shape](gold, draw):
        if text not in seen:
            seen.add(text)
            yield kind, text


def last_digit(gold: Gold) -> str | None:
    """The text with its last digit raised by 1, 9 to 0; None for a number or without a digit."""
    places = [i for i, character in enumerate(gold.text) if character in "0123456789"]
    if gold.shape is Shape.NUMBER or not places:
        return None
    return with_digit(gold.text, places[-1], (int(gold.text[places[-1]]) + 1) % 10)


def _differs(text: str, value: Fraction) -> bool:
    """Whether a text is a number or a fraction other than a value, and not that many percent."""
    gold_value = read_gold(text).value
    return gold_value is not None and gold_value not in (value, value * 100, value / 100)


def _numeric(gold: Gold, draw: random.Random) -> Iterator[tuple[str, str]]:
    """Changes of a number or a fraction, wherever the value is another one."""
    value = gold.value
    assert value is not None
    if (text := digit_changed(gold.text, draw)) and _differs(text, value):
        yield "a digit changed", text
    if (text := digits_exchanged(gold.text, draw)) and _differs(text, value):
        yield "two digits exchanged", text
    if value:
        yield "the sign changed", gold.text[1:] if gold.text[0] in "-−" else f"-{gold.text}"


def _number(gold: Gold, draw: random.Random) -> Iterator[tuple[str, str]]:
    yield from _numeric(gold, draw)
    value, text = gold.value, re.sub(r"[,{}$]|\\[,!$]", "", gold.text)
    assert value is not None
    if value.denominator == 1:
        for near in (value + 1, value - 1):
            if _differs(str(near), value):
                yield "one more or less", str(near)
        if value:
            yield "ten times as much", f"{value * 10}"
    if not value:
        return
    yield "a multiplier behind it", f"{text} {draw.choice(_MULTIPLIERS)}"
    yield "a fraction of it in words", f"{text} {draw.choice(('thirds', 'fifths', 'tenths'))}"
    yield "another variable times it", f"{text}x"
    yield "in a comparison", f"{draw.choice(_COMPARISONS)} {text}"
    if value > 0:
        yield "a range from it", f"{text}-{decimal_text(value + 5)}"
    if value not in (1, -1):
        yield "its square", f"{{{text}}}^2" if value > 0 else f"({text})^2"
        if value > 0:
            yield "its root", rf"\sqrt{{{text}}}"
            yield "one over it", rf"\frac{{1}}{{{text}}}"
    if value > 2 and value.denominator == 1 and value < 1000:
        yield "its factorial", f"{text}!"
    yield "another number beside it", f"{text}, {decimal_text(value + 1)}"
    yield "another number as well", rf"{text} \text{{ or }} {decimal_text(value + 1)}"


def _fraction(gold: Gold, draw: random.Random) -> Iterator[tuple[str, str]]:
    assert gold.value is not None
    if gold.value and abs(gold.value) != 1:
        a, b = gold.value.denominator, gold.value.numerator
        yield "turned upside down", rf"\frac{{{a}}}{{{b}}}"
    yield from _numeric(gold, draw)
    rounded = round(float(gold.value), 1)
    if abs(gold.value - Fraction(str(rounded))) > Fraction(1, 1000):
        yield "rounded to one place", str(rounded)
    yield (
        "one more",
        rf"\frac{{{gold.value.numerator + gold.value.denominator}}}{{{gold.value.denominator}}}",
    )


def _unit(gold: Gold, draw: random.Random) -> Iterator[tuple[str, str]]:
    number, unit = gold.parts
    assert gold.value is not None
    text = digit_changed(number, draw)
    if text and _differs(text, gold.value):
        yield "a digit changed", f"{text}{gold.text[len(number) :]}"
    if gold.value:
        yield "the sign changed", f"-{gold.text}" if number[0] not in "-−" else gold.text[1:]
    word = next(iter(re.findall(r"(?<!\\)\b[a-z]{1,10}\b", unit.replace("{", " { "))), "")
    if gold.value and word in _UNITS:
        yield "another unit", gold.text.replace(word, _UNITS[word])
    if gold.value and (power := re.search(r"\^\{?([23])", unit)):
        place = len(gold.text) - len(unit) + power.start(1)
        yield "another power of the unit", with_digit(gold.text, place, 5 - int(power[1]))


def _option(gold: Gold, draw: random.Random) -> Iterator[tuple[str, str]]:
    (letter,) = gold.parts
    others = [other for other in "ABCDE" if other != letter]
    for other in others[:2]:
        yield "another letter", re.sub(rf"(?<![A-Za-z\\]){letter}(?![a-z])", other, gold.text)
    yield "two letters", rf"\text{{{letter} or {draw.choice(others)}}}"


def _words(gold: Gold, draw: random.Random) -> Iterator[tuple[str, str]]:
    plain = re.sub(r"\\[a-z]+\s?\{([^{}]*)\}", r"\1", gold.text).strip()
    for word, opposite in (*_OPPOSITES, *((b, a) for a, b in _OPPOSITES)):
        if re.search(rf"\b{word}\b", plain, re.IGNORECASE):
            yield "the opposite", re.sub(rf"\b{word}\b", opposite, plain, flags=re.IGNORECASE)
            break
    if permuted := letters_exchanged(plain, draw):
        yield "letters exchanged", permuted
    yield "a word before it", f"not {plain}"
    yield "a letter missing", plain[1:]


def _plain_parts(gold: Gold) -> bool:
    """Whether elements are told apart by their spelling: no two of them can be equal."""
    return len(gold.parts) > 1 and all(re.fullmatch(r"[-−]?\d+", part) for part in gold.parts)


def _joined(gold: Gold, parts: list[str]) -> str:
    left, right = gold.brackets or ("", "")
    return f"{left}{', '.join(parts)}{right}"


def _tuple(gold: Gold, draw: random.Random) -> Iterator[tuple[str, str]]:
    parts = [*gold.parts]
    if text := _element_changed(gold, draw):
        yield "a digit changed", text
    if _plain_parts(gold) and len(set(map(int, _ascii(parts)))) > 1:
        permuted = parts[1:] + parts[:1]
        if permuted != parts:
            yield "elements in another order", _joined(gold, permuted)
    if len(parts) > 2:
        yield "an element missing", _joined(gold, parts[:-1])
    yield "an element too many", _joined(gold, [*parts, "7"])
    left, right = gold.brackets or ("", "")
    mixed = (left[-1], right[-1]) in (("[", ")"), ("(", "]"), ("[", "]"))
    if mixed and len(parts) == 2 and r"\infty" not in gold.text:
        exchanged = {"[": "(", "(": "["}[left[-1]]
        yield "a bracket of another kind", f"{left[:-1]}{exchanged}{', '.join(parts)}{right}"


def _collection(gold: Gold, draw: random.Random) -> Iterator[tuple[str, str]]:
    """Changes of a set or a list: what stays the same whatever the order."""
    if text := _element_changed(gold, draw):
        yield "a digit changed", text
    bound = [re.fullmatch(r"([A-Za-z])\s?=\s?(-?\d+)", part) for part in gold.parts]
    if len(bound) == 2 and bound[0] and bound[1] and bound[0][1] != bound[1][1]:
        (a, x), (b, y) = bound[0].groups(), bound[1].groups()
        if x != y:
            yield "values exchanged between names", f"{a} = {y}, {b} = {x}"
            yield "values in another order", f"({y}, {x})"
    if _plain_parts(gold):
        numbers = [*map(int, _ascii(gold.parts))]
        if numbers.count(numbers[-1]) == 1:
            yield "an element missing", _joined(gold, [*gold.parts[:-1]])
        new = max(numbers) + 1
        yield "an element too many", _joined(gold, [*gold.parts, str(new)])
        yield "another element", _joined(gold, [*gold.parts[:-1], str(new)])


def _element_changed(gold: Gold, draw: random.Random) -> str | None:
    """The answer with a digit of one element changed, if the result differs as a multiset."""
    if gold.brackets is None and any("=" in part for part in gold.parts):
        return None
    if not _plain_parts(gold):
        return None
    i = draw.randrange(len(gold.parts))
    text = digit_changed(gold.parts[i], draw)
    numbers = [*map(int, _ascii(gold.parts))]
    if text is None or int(_ascii([text])[0]) in (*numbers, 0):
        return None
    return _joined(gold, [*gold.parts[:i], text, *gold.parts[i + 1 :]])


def _ascii(parts: list[str] | tuple[str, ...]) -> list[str]:
    return [part.replace("−", "-") for part in parts]


def _equation(gold: Gold, draw: random.Random) -> Iterator[tuple[str, str]]:
    left, right = gold.parts
    side = read_gold(right)
    # A change of one side alone changes an equation that is solved for a name.
    if not re.fullmatch(r"[A-Za-z](?:_\{?\w\}?)?(?:\([a-z]\))?|\\frac\{dy\}\{dx\}", left):
        return
    for kind, text in changes(side, draw):
        if kind in ("a digit changed", "the sign changed", "a variable renamed", "a sign inside"):
            yield kind, f"{left} = {text}"
    if re.fullmatch(r"[a-z]", left) and left not in right:
        yield "another name on the left", f"{'w' if left != 'w' else 'v'} = {right}"


def _formula(gold: Gold, draw: random.Random) -> Iterator[tuple[str, str]]:
    text = gold.text
    if r"\text" in text or not text.isascii():
        return
    if not _MAYBE_NOTHING.search(text):
        changed = digit_changed(text, draw)
        if changed and not _MAYBE_NOTHING.search(changed):
            yield "a digit changed", changed
        if renamed := _renamed(text):
            yield "a variable renamed", renamed
    if not re.search(r"[<>=,]", text):
        for function, other in _FUNCTIONS.items():
            if re.search(rf"{re.escape(function)}(?![A-Za-z])", text):
                pattern = rf"{re.escape(function)}(?![A-Za-z])"
                yield "another function", re.sub(pattern, lambda _, o=other: o, text, count=1)  # type: ignore[misc]
                break
        family = r"\pi" in text and re.search(r"[kn]", text)  # ± 2kπ is the same family
        signs = [] if family else list(re.finditer(r"(?<=[\w})]) ?([+-]) ?(?=[\w\\(])", text))
        plain = not re.search(r"[<>=]|\\[lg]eq?(?![a-z])|\\(?:pm|in|cup|cap|infty|begin)", text)
        if signs and plain and text.count("^") == text.count("^{"):
            sign = draw.choice(signs)
            turned = "-" if sign[1] == "+" else "+"
            yield "a sign inside", f"{text[: sign.start(1)]}{turned}{text[sign.end(1) :]}"
        if plain and "," not in text:
            yield "the sign changed", rf"-\left({text}\right)"
            if not re.search(r"\bC\b", text):  # a constant of integration takes it up
                yield "one more", f"{text}+1"


def _renamed(text: str) -> str | None:
    """A formula with a variable replaced everywhere by one that it does not have."""
    names = {name for name in _VARIABLE.findall(text) if name not in "eidEI"}
    free = next((c for c in "wvuq" if c not in text), None)
    if len(names) != 1 or free is None or re.search(r"\\(?:int|sum|prod|lim)", text):
        return None
    (name,) = names
    return re.sub(rf"(?<![\\A-Za-z{{_]){name}(?![A-Za-z{{])", free, text)


_OF_SHAPE: dict[Shape, Callable[[Gold, random.Random], Iterator[tuple[str, str]]]] = {
    Shape.NUMBER: _number,
    Shape.FRACTION: _fraction,
    Shape.UNIT: _unit,
    Shape.OPTION: _option,
    Shape.WORDS: _words,
    Shape.TUPLE: _tuple,
    Shape.SET: _collection,
    Shape.LIST: _collection,
    Shape.EQUATION: _equation,
    Shape.FORMULA: _formula,
}

r"""Other spellings of a mathematical reference answer that mean the same, as models write them.

Each comes with the name of its kind. A spelling that is the reference answer itself is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from hacrl.audit.shapes import Gold, Shape, decimal_text

__all__ = ["spellings"]

_FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")
_VULGAR = {
    Fraction(1, 2): "½",
    Fraction(1, 3): "⅓",
    Fraction(2, 3): "⅔",
    Fraction(1, 4): "¼",
    Fraction(3, 4): "¾",
    Fraction(1, 5): "⅕",
    Fraction(1, 6): "⅙",
    Fraction(5, 6): "⅚",
    Fraction(1, 8): "⅛",
    Fraction(3, 8): "⅜",
    Fraction(5, 8): "⅝",
    Fraction(7, 8): "⅞",
}
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_SYMBOLS = {
    r"\pi": "π",
    r"\infty": "∞",
    r"\cup": "∪",
    r"\cap": "∩",
    r"\leq": "≤",
    r"\geq": "≥",
    r"\le": "≤",
    r"\ge": "≥",
    r"\neq": "≠",
    r"\pm": "±",
    r"\theta": "θ",
    r"\alpha": "α",
    r"\in": "∈",
    r"\mathbb{R}": "ℝ",
}
_COMMAND = re.compile("|".join(rf"{re.escape(s)}(?![A-Za-z])" for s in _SYMBOLS))
_SIMPLE_FRACTION = re.compile(r"(?<![\d}] )(?<![\d}])\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}")


def spellings(gold: Gold) -> Iterator[tuple[str, str]]:
    """Kind and text of every other spelling."""
    seen = {gold.text}
    for kind, text in (*_OF_SHAPE[gold.shape](gold), *_notations(gold)):
        if text not in seen:
            seen.add(text)
            yield kind, text


def _notations(gold: Gold) -> Iterator[tuple[str, str]]:
    """Notations that any reference answer may be written in."""
    text = gold.text
    yield "a final full stop", f"{text}."
    yield "dollar signs", f"${text}$"
    yield "markdown bold", f"**{text}**"
    if gold.shape is Shape.WORDS:
        return
    yield r"\displaystyle", rf"\displaystyle {text}"
    if "-" in text and r"\text" not in text:
        yield "Unicode minus", text.replace("-", "−")
    yield "full-width digits", _digits_outside_commands(text)
    yield "Unicode symbols", _COMMAND.sub(lambda match: _SYMBOLS[match[0]], text)
    yield r"\dfrac", re.sub(r"\\t?frac(?![A-Za-z])", r"\\dfrac", text)
    yield r"\tfrac", re.sub(r"\\d?frac(?![A-Za-z])", r"\\tfrac", text)
    yield r"no \left and \right", re.sub(r"\\(?:left|right)(?![A-Za-z.])", "", text)
    yield "braces around exponents", re.sub(r"\^(\d)(?!\d)", r"^{\1}", text)
    yield "no braces around exponents", re.sub(r"\^\{(\d)\}", r"^\1", text)
    yield "superscript digits", _superscripts(text)
    yield "thin spaces", re.sub(r"(?<=[\w)}]) ?([+=]) ?(?=[\w(\\])", r"\\, \1 \\,", text)
    yield "wider spaces", re.sub(r" ?([+=]) ?", r"  \1  ", text)
    if gold.shape is not Shape.OPTION and r"\text" not in text:
        yield "fractions with a slash", _SIMPLE_FRACTION.sub(r"(\1)/(\2)", text)
        yield "sqrt(…)", re.sub(r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)", text)
        yield "√ of a number", re.sub(r"\\sqrt\{(\d+)\}(?![\w\d])", r"√\1", text)


def _number(gold: Gold) -> Iterator[tuple[str, str]]:
    assert gold.value is not None
    value, plain = gold.value, decimal_text(gold.value)
    sign, digits = ("-", plain[1:]) if plain.startswith("-") else ("", plain)
    whole, _, decimals = digits.partition(".")
    end = f".{decimals}" if decimals else ""
    yield "no thousands separators", plain
    if len(whole) > 3:
        grouped = f"{int(whole):,}"
        yield "commas between thousands", sign + grouped + end
        yield "braced commas between thousands", sign + grouped.replace(",", "{,}") + end
        yield "thin spaces between thousands", sign + grouped.replace(",", r"\,") + end
        yield "no-break spaces between thousands", sign + grouped.replace(",", "\u202f") + end
    yield "another decimal place", f"{sign}{whole}.{decimals}0"
    yield r"\text{…}", rf"\text{{{plain}}}"
    yield r"\mathbf{…}", rf"\mathbf{{{plain}}}"
    yield "a name for it", f"x = {plain}"
    yield "an equals sign", f"= {plain}"
    if value > 0:
        yield "a plus sign", f"+{plain}"
    if value.denominator == 1:
        yield "a noun", rf"{plain}\text{{ apples}}"
        yield "a noun in plain text", f"{plain} apples"
        yield "unreduced fraction", rf"\frac{{{value.numerator * 2}}}{{2}}"
        if value != 0 and value % 100 == 0:
            zeros = len(plain) - len(plain.rstrip("0"))
            yield "scientific notation", rf"{plain[:-zeros]} \times 10^{{{zeros}}}"
    else:
        yield "as a fraction", rf"\frac{{{value.numerator}}}{{{value.denominator}}}"
        if whole == "0":
            yield "no zero before the point", f"{sign}.{decimals}"


def _fraction(gold: Gold) -> Iterator[tuple[str, str]]:
    assert gold.value is not None
    sign = "-" if gold.value < 0 else ""
    a, b = abs(gold.value).as_integer_ratio()
    yield "a slash", f"{sign}{a}/{b}"
    yield r"\frac", rf"{sign}\frac{{{a}}}{{{b}}}"
    yield r"sign inside \frac", rf"\frac{{{sign}{a}}}{{{b}}}"
    yield r"{… \over …}", rf"{sign}{{{a} \over {b}}}"
    yield "unreduced fraction", rf"{sign}\frac{{{2 * a}}}{{{2 * b}}}"
    if a < 10 and b < 10:
        yield r"\frac without braces", rf"{sign}\frac{a}{b}"
    if gold.value in _VULGAR:
        yield "one character", _VULGAR[gold.value]
    if b != 1 and a > b:
        yield "a mixed number", rf"{sign}{a // b}\frac{{{a % b}}}{{{b}}}"
        yield "a mixed number in plain text", f"{sign}{a // b} {a % b}/{b}"
    if _terminates(b):
        yield "as a decimal", decimal_text(gold.value)


def _unit(gold: Gold) -> Iterator[tuple[str, str]]:
    number, unit = gold.parts
    word = re.sub(r"\\(?:text|mathrm|mbox|textrm)\s?\{\s?([^{}]*)\}", r"\1", unit).strip()
    if "circ" in unit or unit == "°":
        yield "degree sign", f"{number}°"
        yield "the unit in words", f"{number} degrees"
        yield r"\circ without braces", rf"{number}^\circ"
    elif "%" in unit:
        yield "a percent sign", f"{number}%"
        yield "an escaped percent sign", rf"{number}\%"
        yield "the unit in words", f"{number} percent"
    else:
        yield "the unit in plain text", f"{number} {word}"
        yield r"the unit in \text", rf"{number} \text{{ {word}}}"
        yield r"the unit in \mathrm", rf"{number}~\mathrm{{{word}}}"
    yield "no unit", number


def _option(gold: Gold) -> Iterator[tuple[str, str]]:
    (letter,) = gold.parts
    yield "the letter alone", letter
    yield "the letter in parentheses", f"({letter})"
    yield r"\text{…}", rf"\text{{{letter}}}"
    yield r"\textbf{(…)}", rf"\textbf{{({letter})}}"
    yield r"\mathrm{…}", rf"\mathrm{{({letter})}}"


def _words(gold: Gold) -> Iterator[tuple[str, str]]:
    plain = re.sub(r"\\[a-z]+\s?\{([^{}]*)\}", r"\1", gold.text).strip()
    yield "plain text", plain
    yield r"\text{…}", rf"\text{{{plain}}}"
    yield r"\textbf{…}", rf"\textbf{{{plain}}}"
    yield r"\mathrm{…}", rf"\mathrm{{{plain}}}"
    yield "a capital at the beginning", plain[:1].upper() + plain[1:]
    yield "small letters", plain.lower()


def _enclosed(gold: Gold) -> Iterator[tuple[str, str]]:
    assert gold.brackets is not None
    left, right = (
        bracket.removeprefix(r"\left").removeprefix(r"\right") for bracket in gold.brackets
    )
    yield r"\left and \right", rf"\left{left}{', '.join(gold.parts)}\right{right}"
    yield r"no \left and \right", f"{left}{', '.join(gold.parts)}{right}"
    yield "no spaces after commas", f"{left}{','.join(gold.parts)}{right}"
    yield "spaces inside brackets", f"{left} {', '.join(gold.parts)} {right}"


def _set(gold: Gold) -> Iterator[tuple[str, str]]:
    yield from _enclosed(gold)
    if r"\mid" not in gold.text and ":" not in gold.text and "|" not in gold.text:
        yield "another order", rf"\{{{', '.join(reversed(gold.parts))}\}}"


def _list(gold: Gold) -> Iterator[tuple[str, str]]:
    yield "no spaces after commas", ",".join(gold.parts)
    yield "spaces after commas", ", ".join(gold.parts)
    if not any("=" in part for part in gold.parts):
        yield "another order", ", ".join(reversed(gold.parts))
        if len(gold.parts) == 2 and all(re.fullmatch(r"-?\d+", part) for part in gold.parts):
            yield "an “and”", " and ".join(gold.parts)
            yield r"an “and” in \text", r" \text{ and } ".join(gold.parts)


def _equation(gold: Gold) -> Iterator[tuple[str, str]]:
    left, right = gold.parts
    yield "sides exchanged", f"{right} = {left}"
    yield "no spaces", f"{left}={right}"
    if re.fullmatch(r"[a-z](?:\([a-z]\))?", left) and left[0] not in right:
        yield "the right side alone", right


def _nothing(gold: Gold) -> Iterator[tuple[str, str]]:
    yield from ()


_OF_SHAPE: dict[Shape, Callable[[Gold], Iterator[tuple[str, str]]]] = {
    Shape.NUMBER: _number,
    Shape.FRACTION: _fraction,
    Shape.UNIT: _unit,
    Shape.OPTION: _option,
    Shape.WORDS: _words,
    Shape.TUPLE: _enclosed,
    Shape.SET: _set,
    Shape.LIST: _list,
    Shape.EQUATION: _equation,
    Shape.FORMULA: _nothing,
}


def _terminates(denominator: int) -> bool:
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    return denominator == 1


def _digits_outside_commands(text: str) -> str:
    return "".join(
        part if part.startswith("\\") else part.translate(_FULL_WIDTH)
        for part in re.split(r"(\\[A-Za-z]+(?:\{[A-Za-z]+\})?)", text)
    )


def _superscripts(text: str) -> str:
    def raised(match: re.Match[str]) -> str:
        return (match[1] or match[2]).translate(_SUPERSCRIPT)

    return re.sub(r"(?<=[\w)])\^(?:\{(\d{1,2})\}|(\d))(?![\d{])", raised, text)

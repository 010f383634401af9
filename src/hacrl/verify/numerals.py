r"""Numbers in words and numerals with a base.

Number words are a closed class of English, so they are listed: a word that counts, multiplies or
orders is part of the number and never the name of what is counted.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

__all__ = [
    "Numeral",
    "is_number_word",
    "read_numeral",
    "same_numeral",
    "spelled_number",
    "word_value",
]

_SMALL = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_MULTIPLIERS = {
    "dozen": 12, "score": 20, "gross": 144, "hundred": 10**2, "thousand": 10**3,
    "lakh": 10**5, "lac": 10**5, "million": 10**6, "crore": 10**7, "billion": 10**9,
    "trillion": 10**12, "quadrillion": 10**15, "quintillion": 10**18,
    "pair": 2, "couple": 2, "trio": 3, "myriad": 10**4, "googol": 10**100,
}  # fmt: skip
_ORDINALS = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13,
    "fourteenth": 14, "fifteenth": 15, "sixteenth": 16, "seventeenth": 17, "eighteenth": 18,
    "nineteenth": 19, "twentieth": 20, "thirtieth": 30, "fortieth": 40, "fiftieth": 50,
    "sixtieth": 60, "seventieth": 70, "eightieth": 80, "ninetieth": 90, "hundredth": 10**2,
    "thousandth": 10**3, "millionth": 10**6, "billionth": 10**9, "trillionth": 10**12,
}  # fmt: skip
_CARDINALS = dict(zip(_SMALL, range(20), strict=True)) | dict(
    zip(_TENS, range(20, 100, 10), strict=True)
)
_LARGE = re.compile(r"[a-z]*illi(?:on|ard)(?:th)?s?")
_IN_BASE = re.compile(r"(-?)\(?([0-9A-Za-z.]+)\)?_(?:\{(?:\\text\{)?(\w+)\}{1,2}|(\d))")


class Numeral(NamedTuple):
    """Digits in a base from 2 to 36, with a minus in front if there is one."""

    digits: str
    base: int

    @property
    def value(self) -> Fraction:
        """The number."""
        whole, _, rest = self.digits.partition(".")
        return Fraction(int(whole + rest, self.base), self.base ** len(rest))


def read_numeral(text: str) -> Numeral | None:
    """The numeral that a normalized text such as `4210_5` is, else None.

    A digit that the base has not makes it none, as does a name with an index, such as `x_2`.
    """
    match = _IN_BASE.fullmatch(text) if text.isascii() else None
    if match is None or not match[2][0].isdigit():
        return None
    base = _CARDINALS.get((match[3] or match[4]).lower(), match[3] or match[4])
    if not str(base).isdigit() or not 2 <= int(base) <= 36:
        return None
    numeral = Numeral(match[1] + (match[2].upper().lstrip("0") or "0"), int(base))
    try:
        numeral.value  # noqa: B018 - whether the digits belong to the base
    except ValueError:
        return None
    return numeral


def same_numeral(gold: Numeral, answer: Numeral) -> bool:
    """Whether two numerals are the same number, neither with the other's base put to its digits.

    `8_9` and `8_{10}` are the same number, yet who writes one for the other has only copied the
    digits, so they are not accepted for each other.
    """
    return gold == answer or (gold.digits != answer.digits and gold.value == answer.value)


def word_value(word: str) -> Fraction | None:
    """By what a word multiplies the number before it: `million`, `fifths`; None for other words."""
    word = word.lower()
    singular = {"halves": "half"}.get(word, word.removesuffix("s"))
    for name in (word, singular):
        if name in _MULTIPLIERS:
            return Fraction(_MULTIPLIERS[name])
        if name in _ORDINALS:
            return Fraction(1, _ORDINALS[name])
    return None


def is_number_word(word: str) -> bool:
    """Whether a word counts, multiplies or orders: `two`, `twos`, `fifth`, `dozens`, `zillion`."""
    word = word.lower()
    known = {*_CARDINALS, *_MULTIPLIERS, *_ORDINALS, "first", "halve", "nought", "nil"}
    return (
        word in known
        or word.removesuffix("s") in known
        or word.removesuffix("es") in known
        or (word.endswith("ies") and f"{word[:-3]}y" in known)
        or _LARGE.fullmatch(word) is not None
    )


def spelled_number(text: str) -> str | None:
    """The digits of a number written as one word or two (`twelve`, `forty-two`), else None."""
    words = text.lower().replace("-", " ").split()
    values = [_CARDINALS.get(word) for word in words]
    match values:
        case [int(value)]:
            return str(value)
        case [int(tens), int(unit)] if tens >= 20 and 0 < unit < 10:
            return str(tens + unit)
    return None

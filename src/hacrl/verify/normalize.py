r"""Spelling of mathematical answers, made uniform before anything is parsed.

Gold and answer pass through the same functions. Nothing here computes; it only rewrites what people
and models write into what the LaTeX parser of math-verify reads.

Numbers: a comma, a thin space or a space separates thousands if every group after the first has
exactly three digits, so `130,000` and `130 000` are 130000. Any other use of commas is a list:
`1,30,000` is the list 1, 30, 000 and not 130000. A currency sign in front is dropped.
"""

from __future__ import annotations

import re
from decimal import Decimal

__all__ = ["normalize", "number_in_base", "plain_number"]

_CHARACTERS = str.maketrans({"−": "-", "–": "-", "\u00a0": " ", "\u2009": " ", "\u202f": " "})
_WRAPPERS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("**", "**"))
_INNER_BOX = re.compile(r"\\(?:boxed|fbox)\s{0,3}(?=\{)")
_THIN_SPACE = re.compile(r"(?<=\d)(?:\{,\}|\\[,!;:]|,\s?\\!)\s?(?=\d{3}(?!\d))")
_CURRENCY = re.compile(
    r"^([-+]?)\s?(?:\\?\$|[€£¥₹]|\\text\{\$\}|\\pounds|\\euro)\s?(?=[-+]?[\d.][^$]*$)"
)
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+)(?:\.\d*)?")
_PLAIN = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)")
_SCIENTIFIC = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+))[eE]([-+]?\d{1,3})")
_MIXED = re.compile(r"([-+]?\d+) (\d+)/(\d+)")
_WITH_UNIT = re.compile(r"([-+]?[\d.,]*\d) ?((?:[a-z]{3,20} ?){1,3})")
_NO_UNIT = re.compile(
    r"\b(?:and|or|to|sqrt|times|plus|minus|over|mod|div|sin|cos|tan|log|exp|hundred|thousand|million"
    r"|billion|trillion|dozen|percent|half|halves|third|thirds|quarter|quarters|if|not)\b"
)
_WORDS = (
    (re.compile(r"(?<![\\A-Za-z{])(?:pi(?![A-Za-z])|π)|π"), r"\\pi "),
    (re.compile(r"(?<![\\A-Za-z{])(?:infinity|oo)(?![A-Za-z])|∞"), r"\\infty "),
    (re.compile(r"\\varnothing|∅"), r"\\emptyset "),
    (re.compile(r"(?<=\d)\.(?=[/*+)^-])"), ""),
    (re.compile(r"√(?=\(|\{)"), r"\\sqrt"),
    (re.compile(r"√(\d+)"), r"\\sqrt{\1}"),
    (re.compile(r"\\frac\s*(\\[A-Za-z]+)\s*(\w)"), r"\\frac{\1}{\2}"),
    (re.compile(r"_\{\\(max|min)\s*\}"), r"_{\1}"),
    (re.compile(r"(?<![\\A-Za-z])(?:np|numpy|math)\."), ""),
    (re.compile(r"(?<![\\A-Za-z])(arcsin|arccos|arctan)(?=\()"), r"\\\1"),
)
_SYMBOLS = (
    # SymPy takes these for constants and a function; with an index, or as γ, they are names.
    (re.compile(r"(?<![\\A-Za-z])([EIe])_(?:\{(\w+)\}|(\w))"), r"X_{\1\2\3}"),
    (re.compile(r"\\gamma(?![A-Za-z])"), "g_{amma}"),
    (re.compile(r"_\{?\\odot\}?"), "_{sun}"),
)
_NAMED_INTERVAL = re.compile(r"[A-Za-z] ?(?=\([^()\[\]]*\]$|\[[^()\[\]]*\)$)")
_IN_BASE = re.compile(r"(\w+)_\{?(\d{1,2})\}?")


def normalize(text: str) -> str:
    """A uniform spelling of an answer. Linear in its length for the short texts it is meant for."""
    text = _unwrap(_INNER_BOX.sub("", text.translate(_CHARACTERS)).strip())
    text = _THIN_SPACE.sub("", _CURRENCY.sub(r"\1", text))
    unit = _WITH_UNIT.fullmatch(text)
    if unit and not _NO_UNIT.search(unit[2]):
        text = unit[1]
    if _THOUSANDS.fullmatch(text):
        return text.replace(",", "").replace(" ", "").removeprefix("+")
    if _PLAIN.fullmatch(text):
        return text.removeprefix("+")
    if scientific := _SCIENTIFIC.fullmatch(text):
        return rf"{scientific[1]} \times 10^{{{int(scientific[2])}}}"
    if mixed := _MIXED.fullmatch(text):
        return rf"{mixed[1]}\frac{{{mixed[2]}}}{{{mixed[3]}}}"
    text = _NAMED_INTERVAL.sub("", text) if _NAMED_INTERVAL.match(text) else text
    for pattern, replacement in (*_WORDS, *_SYMBOLS):
        text = pattern.sub(replacement, text)
    return text


def number_in_base(text: str) -> int | None:
    """The value of a normalized text such as `4210_5`, else None."""
    found = _IN_BASE.fullmatch(text) if text.isascii() else None
    if found is None or not 2 <= int(found[2]) <= 36:
        return None
    try:
        return int(found[1], int(found[2]))
    except ValueError:  # a digit that the base has not, or a name such as x_2
        return None


def plain_number(text: str) -> Decimal | None:
    """The exact value of a normalized text that is a plain decimal number, else None."""
    return Decimal(text) if text.isascii() and _PLAIN.fullmatch(text) else None


def _unwrap(text: str) -> str:
    """Without a final full stop and without the dollar signs or asterisks around the whole."""
    before = None
    while before != text:
        before = text
        if text.endswith(".") and not text.endswith(r"\."):
            text = text[:-1].rstrip()
        for left, right in _WRAPPERS:
            inner = text[len(left) : -len(right)]
            enclosed = len(text) > len(left) + len(right) and text == left + inner + right
            if enclosed and right not in inner and left not in inner:
                text = inner.strip()
                break
    return text

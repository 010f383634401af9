r"""Spelling of mathematical answers, made uniform before anything is parsed.

Gold and answer pass through the same functions. Nothing here computes; it only rewrites what people
and models write into what the LaTeX parser of math-verify reads.

Numbers: a comma, a thin space or a space separates thousands if every group after the first has
exactly three digits, so `130,000` and `130 000` are 130000. Any other use of commas is a list:
`1,30,000` is the list 1, 30, 000 and not 130000. Currency signs and units stay; see `units`.
"""

from __future__ import annotations

import re
from decimal import Decimal

from hacrl.verify.characters import plain_characters

__all__ = ["normalize", "plain_number"]

_SPACES = str.maketrans(dict.fromkeys("\t\n\r\v\f\u00a0\u2009\u202f", " "))
_WRAPPERS = (
    ("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("**", "**"), ("__", "__"),
    ("`", "`"),
)  # fmt: skip
_INNER_BOX = re.compile(r"\\(?:boxed|fbox)\s{0,3}(?=\{)")
_STYLED = re.compile(
    r"\\(?:text|textbf|textit|textrm|textsf|texttt|mathrm|mathbf|mathsf|mathit|mbox|bf|rm|bm"
    r"|boldsymbol|displaystyle)\s*\{([^{}]*)\}"
)
_SWITCH = re.compile(r"\\(?:displaystyle|textstyle|bf|rm|it|large|Large)(?![A-Za-z])\s*")
_THIN_SPACE = re.compile(r"(?<=\d)(?:\{,\}|\\[,!;:]|,\s?\\!)\s?(?=\d{3}(?!\d))")
_AROUND = re.compile(r"^(?:\\[,;:! ]|~|\s|\\q?quad(?![A-Za-z]))+|(?:\\[,;:! ]|~|\s)+$")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+)(?:\.\d*)?")
_PLAIN = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)")
_SCIENTIFIC = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+))[eE]([-+]?\d{1,3})")
_MIXED = re.compile(r"([-+]?\d+) (\d+)/(\d+)")
_FUNCTIONS = (
    "arcsin|arccos|arctan|arccot|sinh|cosh|tanh|sin|cos|tan|cot|sec|csc|ln|log|exp|min|max|gcd|lcm"
)
_WORDS = (
    (re.compile(r"(?<![\\A-Za-z{])(?:np|numpy|math)\."), ""),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"(?<![\\A-Za-z])(?:pi)(?![A-Za-z])"), r"\\pi "),
    (re.compile(r"(?<![\\A-Za-z{])(?:infinity|oo)(?![A-Za-z])"), r"\\infty "),
    (re.compile(r"\\varnothing"), r"\\emptyset "),
    (re.compile(r"(?<=\d)\.(?=[/*+)^-])"), ""),
    (re.compile(r"\\frac\s*(\\[A-Za-z]+)\s*(\w)"), r"\\frac{\1}{\2}"),
    (re.compile(r"\{([^{}]*)\\over(?![A-Za-z])([^{}]*)\}"), r"\\frac{\1}{\2}"),
    (re.compile(r"_\{\\(max|min)\s*\}"), r"_{\1}"),
    (re.compile(r"(?<![\\A-Za-z])sqrt\s*\(([^()]*)\)"), r"\\sqrt{\1}"),
    (re.compile(r"(?<![\\A-Za-z])sqrt\s*(\d+)"), r"\\sqrt{\1}"),
    (re.compile(r"(?<![\\A-Za-z])sqrt\s*(?=\{)"), r"\\sqrt"),
    (re.compile(rf"(?<![\\A-Za-z_{{])({_FUNCTIONS})(?![A-Za-z])"), r"\\\1 "),
    (re.compile(rf"(?<=[0-9)}}])({_FUNCTIONS})(?=[( ])"), r"\\\1 "),
    (re.compile(r"\bper ?cent\b"), r"\\%"),
    (re.compile(r"(?<!\\)%"), r"\\%"),
)
_SYMBOLS = (
    # SymPy takes these for constants and a function; with an index, or as γ, they are names.
    (re.compile(r"(?<![\\A-Za-z])([EIe])_(?:\{(\w+)\}|(\w))"), r"X_{\1\2\3}"),
    (re.compile(r"\\gamma(?![A-Za-z])"), "g_{amma}"),
    (re.compile(r"\\Gamma(?![A-Za-z])"), "G_{amma}"),
    (re.compile(r"_\{?\\odot\}?"), "_{sun}"),
)
_TEXT_INDEX = re.compile(r"_\{\\(?:text|textrm|mathrm|mbox)\s*\{\s*(\w+)\s*\}\s*\}")
_DOTS = re.compile(r"\\(d{1,3}ot)\s*\{?\s*(\\?[A-Za-z]+)\s*\}?(?:_\{?(\w+)\}?)?")
_PRIMES = re.compile(r"([A-Za-z}])(?:_\{?(\w+)\}?)?((?:'+|\^\{?\s*(?:\\prime\s*)+\}?))")
_PAIRED_DOLLARS = re.compile(r"(?<!\\)\$")
_NAMED_INTERVAL = re.compile(r"[A-Za-z] ?(?=\([^()\[\]]*\]$|\[[^()\[\]]*\)$)")


def normalize(text: str) -> str:
    """A uniform spelling of an answer. Linear in its length for the short texts it is meant for."""
    text = plain_characters(text.translate(_SPACES))
    text = _unwrap(_SWITCH.sub("", _INNER_BOX.sub("", text)).strip())
    text = _THIN_SPACE.sub("", text.removeprefix("=").lstrip())
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
    if len(_PAIRED_DOLLARS.findall(text)) % 2 == 0:
        text = _PAIRED_DOLLARS.sub("", text)
    text = _DOTS.sub(r"\2_{\1\3}", _TEXT_INDEX.sub(r"_{\1}", text))
    return _PRIMES.sub(_prime, text).strip()


def plain_number(text: str) -> Decimal | None:
    """The exact value of a normalized text that is a plain decimal number, else None."""
    return Decimal(text) if text.isascii() and _PLAIN.fullmatch(text) else None


def _prime(match: re.Match[str]) -> str:
    # The parser of math-verify drops primes, which makes a derivative of the function itself.
    primes = match[3].count("'") + match[3].count("prime")
    return f"{match[1]}_{{{'prime' * primes}{match[2] or ''}}}"


def _unwrap(text: str) -> str:
    """Without a final full stop and without what surrounds the whole: signs of mathematics, of
    emphasis or of style, and spacing."""
    before = None
    while before != text:
        before = text
        text = _AROUND.sub("", text)
        if text.endswith(".") and not text.endswith(r"\."):
            text = text[:-1].rstrip()
        for left, right in _WRAPPERS:
            inner = text[len(left) : -len(right)]
            enclosed = len(text) > len(left) + len(right) and text == left + inner + right
            if enclosed and right not in inner and left not in inner:
                text = inner.strip()
                break
        if styled := _STYLED.fullmatch(text):
            text = styled[1].strip()
    return text

r"""Whether an answer is a formula, and the comparison of those that are not.

A text is a formula if it consists of what is known to belong to one: numbers, letters, operators,
and the LaTeX commands below. Everything else is text, and text is compared as text. This way round
nothing is ever read as a product of its letters because it was not excluded.
"""

from __future__ import annotations

import re

__all__ = ["is_formula", "same_words", "with_commas"]

_COMMANDS = frozenset([
    "frac", "dfrac", "tfrac", "cfrac", "sqrt", "binom", "dbinom", "tbinom", "choose", "cdot",
    "times", "div", "pm", "mp", "ast", "le", "leq", "leqslant", "ge", "geq", "geqslant", "lt",
    "gt", "ne", "neq", "in", "notin", "cup", "cap", "setminus", "subset", "subseteq", "infty",
    "emptyset", "pi", "circ", "degree", "left", "right", "big", "Big", "bigg", "Bigg", "bigl",
    "bigr", "Bigl", "Bigr", "lfloor", "rfloor", "lceil", "rceil", "langle", "rangle", "lvert",
    "rvert", "vert", "Vert", "mid", "lbrace", "rbrace", "lbrack", "rbrack", "mathbb", "mathcal",
    "begin", "end", "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan",
    "arccot", "sinh", "cosh", "tanh", "ln", "log", "lg", "exp", "min", "max", "gcd", "lcm",
    "det", "dim", "arg", "deg", "Re", "Im", "inf", "sup", "lim", "sum", "prod", "int", "iint",
    "oint", "partial", "to", "bar", "hat", "vec", "overline", "tilde", "quad", "qquad",
    "operatorname", "ell", "hbar", "nabla", "cdots", "ldots", "dots", "prime", "alpha", "beta",
    "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "vartheta", "iota",
    "kappa", "lambda", "mu", "nu", "xi", "rho", "varrho", "sigma", "tau", "upsilon", "phi",
    "varphi", "chi", "psi", "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Sigma",
    "Upsilon", "Phi", "Psi", "Omega", "Pi", "limits", "nolimits",
])  # fmt: skip
_ENVIRONMENTS = frozenset({"matrix", "pmatrix", "bmatrix", "vmatrix", "Bmatrix", "smallmatrix"})
_LONGEST_PRODUCT = 3
"""Letters in a row that may be a product; more are a word."""
_TOKEN = re.compile(
    r"\\(?P<command>[A-Za-z]+)|(?P<name>(?:begin|end)?\{(?P<environment>[a-zA-Z]*matrix)\})"
    r"|(?P<index>_\{[A-Za-z0-9]+\})|(?P<letters>[A-Za-z]+)|(?P<number>\d+(?:,\d{3}(?!\d))*(?:\.\d+)?|\.\d+)"
    r"|(?P<sign>\\[,;:! {}%|\\]|[-+*/^_=<>()\[\]{}|!,;&~ ])",
    re.ASCII,
)
_MATHBB = re.compile(r"\\mathbb\s*\{?[A-Z]\}?")
_DIGITS = r"\d(?:[\d.()\s]|,(?=\d{3}))*"
_DIGITS_AND_DASHES = re.compile(rf"[-+()\s]*{_DIGITS}(?:-[()\s]*{_DIGITS})+")
_DIVISIONS = re.compile(r"\d+(?:\s*/\s*\d+){2,}")
_ELEMENTS = re.compile(r"(?:[A-Z][a-z]?(?:_\{?\d+\}?|\d+)?){2,}")
_ONLY_LETTERS = re.compile(r"[A-Za-z](?: ?[A-Za-z])+")
_LABELLED = re.compile(r"(?<![A-Za-z\\])[A-Za-z]+\d")
_NUMBERS_IN_A_ROW = re.compile(r"[^\\]*\d +\d[^\\]*")
_NUMBER_WITH_INDEX = re.compile(r"\d\)?_")
_INDEXED = re.compile(r"_\{[^{}]*\}|_[A-Za-z0-9]|\\[A-Za-z]+(?:\{[A-Za-z]*\}|\s*\d+)?")
_AND = re.compile(
    r",?\s*(?:\\(?:text|mathrm|mbox)\s*\{\s*(?:and|or)\s*\}|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z]))\s*"
)
_STYLE = re.compile(
    r"\\(?:text|textbf|textit|textrm|textsf|mathrm|mathbf|mathsf|mathit|mbox|operatorname)\b\s*"
)
_SPACING = re.compile(r"\\[,;:! ]|~|\\q?quad(?![A-Za-z])|\\(?:left|right)(?![A-Za-z])")
_SPELLING = re.compile(r"\\[A-Za-z]+|[A-Za-z]+|\d+(?:[.,]\d+)*|\S")
_LETTERS_APART = re.compile(r"(?<![A-Za-z\\])[A-Za-z](?: +[A-Za-z])+(?![A-Za-z])")
_ABBREVIATED = re.compile(r"\b([A-Za-z])\.\s?([A-Za-z])\.?(?![A-Za-z])")
_SHORT_WORDS = frozenset({"yes", "no", "odd", "all", "none", "one", "two", "six", "ten", "true"})


def is_formula(text: str) -> bool:
    """Whether a normalized text consists of what belongs to a formula.

    Dates, ranges and telephone numbers do not make formulas, though each could be a subtraction;
    neither do words, and chemical formulas.
    """
    if any(
        pattern.fullmatch(text)
        for pattern in (_DIGITS_AND_DASHES, _DIVISIONS, _ONLY_LETTERS, _NUMBERS_IN_A_ROW)
    ):
        return False
    if _LABELLED.search(_INDEXED.sub("", text)):
        return False  # A1, H2O, 2A3B: a letter is multiplied from the left
    if _NUMBER_WITH_INDEX.search(text):
        return False  # a base, which the parser drops
    if _ELEMENTS.fullmatch(text) and sum(letter.isupper() for letter in text) > 1:
        return False
    position, after_number, several_letters = 0, False, False
    plain = _MATHBB.sub("X", text)
    while position < len(plain):
        token = _TOKEN.match(plain, position)
        if token is None:
            return False
        if token["command"] and token["command"] not in _COMMANDS:
            return False
        if token["environment"] and token["environment"] not in _ENVIRONMENTS:
            return False
        letters = token["letters"] or ""
        if len(letters) > _LONGEST_PRODUCT:
            return False
        if after_number and (token["number"] or "").startswith("."):
            return False  # a version, a date, a clause: 1.2.3
        after_number = token["number"] is not None
        several_letters = several_letters or len(letters) > 1
        position = token.end()
    parts = re.split(r"[,;\s]+", plain.strip("(){}[] "))
    # A list of words is no list of products.
    return not (several_letters and all(re.fullmatch(r"[A-Za-z]+", part) for part in parts))


def with_commas(text: str) -> str:
    r"""The text with `and` and `or` between formulas as commas; unchanged if it holds words."""
    replaced = _AND.sub(", ", text)
    return replaced if replaced != text and is_formula(replaced) else text


def same_words(gold: str, answer: str) -> bool:
    """Whether two normalized texts are the same but for spacing, style, and capitals of words."""
    a, b = _spelling(gold), _spelling(answer)
    several = len(a) > 1
    return len(a) == len(b) and all(
        x == y or (x.lower() == y.lower() and (several or _is_word(x, y)))
        for x, y in zip(a, b, strict=True)
    )


def _spelling(text: str) -> list[str]:
    """The words, numbers, signs and commands of a text, without what only groups or styles."""
    text = _ABBREVIATED.sub(r"\1\2", _SPACING.sub(" ", _STYLE.sub("", text))).rstrip(" .")
    text = re.sub(r"[{}$]", " ", text)
    words = _SPELLING.findall(_LETTERS_APART.sub(lambda run: run[0].replace(" ", ""), text))
    return words[1:-1] if len(words) == 3 and words[0] + words[2] == "()" else words


def _is_word(gold: str, answer: str) -> bool:
    """Whether two texts that differ in capitals alone are words, so that they are the same.

    Words are (`Even`, `even`, `EVEN`); names of one to three letters are not (`n`, `N`; `AB`,
    `ab`), but for a capital at the beginning and the short words that answers consist of.
    """
    if len(gold) > _LONGEST_PRODUCT or gold.lower() in _SHORT_WORDS:
        return True
    return len(gold) > 1 and {gold, answer} == {gold.lower(), gold.capitalize()}

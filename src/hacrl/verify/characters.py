r"""Unicode forms of mathematical characters as the ASCII and LaTeX that stand for them.

NFKC alone is not enough: it makes `5²` the number 52 and `2½` the text `21⁄2`. So superscripts,
subscripts and fractions are rewritten first, then NFKC folds what is left (full-width digits,
mathematical alphabets, ligatures), and last come the signs that have a name in LaTeX.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["plain_characters"]

_SIGNS = {
    "−": "-", "‐": "-", "‑": "-", "‒": "-", "–": "-", "—": "-", "×": r"\times ", "✕": r"\times ",
    "⋅": r"\cdot ", "·": r"\cdot ", "∙": r"\cdot ", "÷": "/", "⁄": "/", "∕": "/", "±": r"\pm ",
    "∓": r"\mp ", "≤": r"\le ", "⩽": r"\le ", "≥": r"\ge ", "⩾": r"\ge ", "≠": r"\ne ",
    "≈": r"\approx ", "≡": r"\equiv ", "∈": r"\in ", "∉": r"\notin ", "∪": r"\cup ",
    "∩": r"\cap ", "∖": r"\setminus ", "⊂": r"\subset ", "⊆": r"\subseteq ", "∅": r"\emptyset ",
    "⌀": r"\emptyset ", "∞": r"\infty ", "√": r"\sqrt", "∛": r"\sqrt[3]", "∜": r"\sqrt[4]",
    "∠": r"\angle ", "△": r"\triangle ", "°": r"^\circ ", "∘": r"\circ ", "′": "'", "″": "''",
    "‴": "'''", "’": "'", "∑": r"\sum ", "∏": r"\prod ", "∫": r"\int ", "∂": r"\partial ",
    "∇": r"\nabla ", "→": r"\to ", "⇒": r"\Rightarrow ", "⌊": r"\lfloor ", "⌋": r"\rfloor ",
    "⌈": r"\lceil ", "⌉": r"\rceil ", "⟨": r"\langle ", "⟩": r"\rangle ", "ℝ": r"\mathbb{R}",
    "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "ℚ": r"\mathbb{Q}", "ℂ": r"\mathbb{C}", "ℏ": r"\hbar ",
    "ℓ": r"\ell ", "∣": "|", "∥": r"\parallel ", "⊥": r"\perp ", "…": r"\ldots ", "⋯": r"\cdots ",
    "，": ",", "、": ",", "：": ":", "∶": ":", "；": ";", "℃": r"^\circ C", "℉": r"^\circ F",
    "µ": "\N{GREEK SMALL LETTER MU}", "\N{OHM SIGN}": "\N{GREEK CAPITAL LETTER OMEGA}",
    "\u2061": "", "\u2062": "", "\u2063": "", "\u200b": "", "\u2060": "", "\ufeff": "",
}  # fmt: skip
_TRANSLATION = str.maketrans(_SIGNS)
_SPECIAL = {"FINAL SIGMA": "sigma", "OMICRON": "o"}
_FRACTIONS = re.compile("(?<=[0-9])?[¼½¾⅐-⅞↉]")
_RAISED = re.compile(
    "[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ]+",
)
_LOWERED = re.compile("[₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₒₓₕₖₗₘₙₚₛₜᵢⱼ]+")
_ROOT_OF_NUMBER = re.compile(r"(\\sqrt(?:\[\d\])?)(\d+(?:\.\d+)?)")
_ROOT_OF_GROUP = re.compile(r"(\\sqrt(?:\[\d\])?)\(([^()]*)\)")


def plain_characters(text: str) -> str:
    """The text with Unicode's mathematical forms spelled in ASCII and LaTeX."""
    if text.isascii():
        return text
    text = _FRACTIONS.sub(_fraction, text)
    text = _RAISED.sub(lambda match: f"^{{{_folded(match[0])}}}", text)
    text = _LOWERED.sub(lambda match: f"_{{{_folded(match[0])}}}", text)
    had_root = any(sign in text for sign in "√∛∜")
    text = _folded(text.translate(_TRANSLATION)).translate(_TRANSLATION)
    text = "".join(_greek(character) for character in text)
    if had_root:  # a radical sign has no braces: it covers the number or the group that follows
        text = _ROOT_OF_NUMBER.sub(r"\1{\2}", _ROOT_OF_GROUP.sub(r"\1{\2}", text))
    return text


def _fraction(match: re.Match[str]) -> str:
    numerator, _, denominator = unicodedata.normalize("NFKC", match[0]).partition("⁄")
    return f" {numerator}/{denominator}"


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).replace("\N{MINUS SIGN}", "-")


def _greek(character: str) -> str:
    r"""A Greek letter as its LaTeX command; one that looks Latin (`Α`) as the Latin letter."""
    if not ("Ͱ" <= character <= "Ͽ"):
        return character
    name = unicodedata.name(character, "")
    for case, size in (("GREEK SMALL LETTER ", str.lower), ("GREEK CAPITAL LETTER ", str.title)):
        if name.startswith(case):
            letter = name.removeprefix(case)
            letter = _SPECIAL.get(letter, letter)
            letter = {"LAMDA": "LAMBDA"}.get(letter, letter)
            if " " in letter:
                return character
            if case.endswith("CAPITAL LETTER ") and letter in _LATIN_CAPITALS:
                return _LATIN_CAPITALS[letter]
            return f"\\{size(letter)} "
    return character


_LATIN_CAPITALS = {
    "ALPHA": "A", "BETA": "B", "EPSILON": "E", "ZETA": "Z", "ETA": "H", "IOTA": "I", "KAPPA": "K",
    "MU": "M", "NU": "N", "OMICRON": "O", "RHO": "P", "TAU": "T", "UPSILON": "Y", "CHI": "X",
}  # fmt: skip

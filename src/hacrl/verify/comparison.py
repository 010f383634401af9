"""Whether an answer is the reference answer: which of the ways to compare two answers applies.

Each way is taken only where what it compares is known to be of its kind: numerals with a base,
named values, quantities, formulas. What is none of these is text.
"""

from __future__ import annotations

from fractions import Fraction

from hacrl.verify.equality import equal, value_of
from hacrl.verify.latex import read
from hacrl.verify.names import named_values, split_list
from hacrl.verify.normalize import normalize, plain_number
from hacrl.verify.numerals import read_numeral, same_numeral
from hacrl.verify.units import Quantity, read_quantity, scale
from hacrl.verify.wording import is_formula, same_words, with_commas

__all__ = ["same_answer"]

_RELATIVE = 1e-6
"""Of two quantities in different units, which are seldom exact in both."""
_COORDINATES = frozenset("xyz")


def same_answer(gold: str, answer: str) -> bool | None:
    """Whether two normalized answers are the same; None if the reference answer cannot be read.

    Raises:
        Exception: whatever SymPy raises on expressions that it cannot compare.
    """
    if gold == answer:
        return True
    numerals = read_numeral(gold), read_numeral(answer)
    if any(numerals):
        return _same_numerals(gold, answer)
    gold, answer = with_commas(gold), with_commas(answer)
    gold_names, answer_names = named_values(gold), named_values(answer)
    if gold_names or answer_names:
        return _same_named(gold, gold_names, answer, answer_names)
    return _same_quantities(gold, answer)


def _same_numerals(gold: str, answer: str) -> bool:
    a, b = read_numeral(gold), read_numeral(answer)
    if a and b:
        return same_numeral(a, b)
    numeral, other = (a, plain_number(answer)) if a else (b, plain_number(gold))
    return numeral is not None and other is not None and numeral.value == other


def _same_named(
    gold: str,
    gold_names: list[tuple[str, str]] | None,
    answer: str,
    answer_names: list[tuple[str, str]] | None,
) -> bool | None:
    """Compare answers of which one at least gives values to names.

    Names bind values. An answer without names is compared in the order of the reference answer; a
    reference answer without names in the order of the alphabet, if the answer follows it or names
    coordinates.
    """
    if gold_names and answer_names:
        return _same_bindings(gold_names, answer_names)
    if gold_names:
        if len(gold_names) == 1 or len({name for name, _ in gold_names}) == 1:
            values = ", ".join(value for _, value in gold_names)
            return same_answer(values, answer) or _same_formulas(gold, answer)
        parts = _unbracketed(answer)
        return len(parts) == len(gold_names) and _all(
            same_answer(value, part) for (_, value), part in zip(gold_names, parts, strict=True)
        )
    assert answer_names is not None
    names = [name for name, _ in answer_names]
    if len(set(names)) == 1:
        values = ", ".join(value for _, value in answer_names)
        return same_answer(gold, values) or _same_formulas(gold, answer)
    if names != sorted(names) and not _COORDINATES.issuperset(names):
        return False
    parts = _unbracketed(gold)
    return len(parts) == len(names) and _all(
        same_answer(part, value)
        for part, (_, value) in zip(parts, sorted(answer_names), strict=True)
    )


def _same_bindings(gold: list[tuple[str, str]], answer: list[tuple[str, str]]) -> bool | None:
    left = list(answer)
    for name, value in gold:
        binding = next(
            (binding for binding in left if binding[0] == name and same_answer(value, binding[1])),
            None,
        )
        if binding is None:
            # One equation may be another rearranged, as y = 2x is x = y/2.
            whole = [" = ".join(binding) for binding in (gold[0], answer[0])]
            return len(gold) == len(answer) == 1 and _same_formulas(*whole) is True
        left.remove(binding)
    return not left


def _same_quantities(gold: str, answer: str) -> bool | None:
    a, b = read_quantity(gold), read_quantity(answer)
    if a is None and b is None:
        return _same_formulas(gold, answer)
    if a is None and b is not None and b.unit is not None:
        a = read_quantity(gold, letters=True)
    if b is None and a is not None and a.unit is not None:
        b = read_quantity(answer, letters=True)
    a = a or Quantity(gold, Fraction(1), None)
    b = b or Quantity(answer, Fraction(1), None)
    times = 1.0 if a.unit is None or b.unit is None else scale(a.unit, b.unit)
    if times is None:
        return False
    values = normalize(a.value), normalize(b.value)
    if a.factor == b.factor == 1 and times == 1.0:
        numbers = [plain_number(value) for value in values]
        if None not in numbers:
            return numbers[0] == numbers[1]
        return _same_formulas(*values)
    exact = _times(values[0], a.factor), _times(values[1], b.factor)
    if times == 1.0:
        return _same_formulas(*exact)
    formulas = [read(value) if is_formula(value) else None for value in exact]
    x, y = (None if value is None else value_of(value) for value in formulas)
    if x is None or y is None:
        return False
    return abs(x - y * times) <= _RELATIVE * max(abs(x), abs(y * times))


def _times(value: str, factor: Fraction) -> str:
    return value if factor == 1 else rf"({value}) \cdot ({factor})"


def _same_formulas(gold: str, answer: str) -> bool | None:
    if not is_formula(gold):
        return same_words(gold, answer)
    meaning = read(gold)
    if meaning is None:
        return True if same_words(gold, answer) else None
    if not is_formula(answer):
        return False
    value = read(answer)
    return value is not None and equal(meaning, value)


def _unbracketed(text: str) -> list[str]:
    text = text.replace(r"\left", "").replace(r"\right", "").strip()
    if text.startswith("(") and text.endswith(")") and len(split_list(text)) == 1:
        text = text[1:-1]
    return split_list(text)


def _all(results: object) -> bool | None:
    """True if all are; None if a reference answer cannot be read, and no other differs."""
    listed = list(results)  # type: ignore[call-overload]
    if any(result is False for result in listed):
        return False
    return None if None in listed else True

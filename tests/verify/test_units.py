from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hacrl.verify.normalize import normalize
from hacrl.verify.units import read_quantity, scale


@pytest.mark.parametrize(
    ("text", "value", "factor", "unit"),
    [
        (r"5\text{ cm}^2", "5", 1, "centimeter ** 2"),
        ("5 m/s", "5", 1, "meter / second"),
        (r"3\sqrt{2}\text{ ft}", r"3\sqrt{2}", 1, "foot"),
        ("$5", "5", 1, "dollar"),
        ("5 €", "5", 1, "euro"),
        ("42 apples", "42", 1, "counted apple"),
        ("1.5 million", "1.5", 10**6, None),
        ("3 fifths", "3", Fraction(1, 5), None),
        ("two thirds", "2", Fraction(1, 3), None),
        ("3 dozen eggs", "3", 12, "counted egg"),
        ("90°", "90", 1, "degree"),
        ("twelve", "12", 1, None),
        ("3 hours 30 minutes", "7/2", 1, "hour"),
    ],
)
def test_quantities(text: str, value: str, factor: int | Fraction, unit: str | None) -> None:
    found = read_quantity(normalize(text))
    assert found == (value, Fraction(factor), unit)


@pytest.mark.parametrize(
    "text",
    ["5", "x", "5x", "5 m", "3 squared", "3 or 4", "3 less", "3 times", "3rd", "9 a.m.", "1.5 M",
     "the answer", "3 twos", "3 more apples", "5 cm 3 x", "apples", "apples 5", ""],
)  # fmt: skip
def test_no_quantities(text: str) -> None:
    assert read_quantity(normalize(text)) is None


def test_a_letter_is_a_unit_where_it_is_asked_for() -> None:
    found = read_quantity("5 m", letters=True)
    assert found is not None
    assert found.unit == "meter"


@pytest.mark.parametrize(
    ("gold", "answer", "times"),
    [
        ("centimeter", "meter", 100.0),
        ("hour", "minute", 1 / 60),
        ("dollar", "cent", 0.01),
        ("centimeter", "centimeter ** 2", None),
        ("counted apple", "counted pear", None),
        ("counted apple", "meter", None),
        ("unit", "meter", None),
        ("dollar", "euro", None),
    ],
)
def test_scale(gold: str, answer: str, times: float | None) -> None:
    assert scale(gold, answer) == (None if times is None else pytest.approx(times, rel=1e-12))


@given(
    st.integers(-999, 999),
    st.text(alphabet="abcdefghmskg%/^*-2{}()_ .", max_size=40),
)
def test_any_words_after_a_number(number: int, words: str) -> None:
    found = read_quantity(normalize(f"{number} {words}"))
    assert found is None or found.unit != ""

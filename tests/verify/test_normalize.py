from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hacrl.verify.normalize import normalize, plain_number


@pytest.mark.parametrize(
    "text",
    [
        "130000", "130,000", "130000.00", "130{,}000", r"130\,000", "130 000", "**130,000**",
        "$130000$", r"\(130000\)", "130,000.", "+130000", r"\boxed{130000}", "= 130000",
        "\u202f130\u202f000", r"\text{130000}", r"\mathbf{130,000}", "１３０，０００", "`130000`",
    ],
)  # fmt: skip
def test_spellings_of_a_number(text: str) -> None:
    assert plain_number(normalize(text).strip("{}")) == Decimal(130000)


@pytest.mark.parametrize(
    "text",
    ["1,30,000", "13,00", "1,2", "2 pi", "5 or 6", "5 million", "5 and 6", "1 2", "", "x", "٣"],
)
def test_not_a_plain_number(text: str) -> None:
    assert plain_number(normalize(text)) is None


def test_minus_signs() -> None:
    assert plain_number(normalize("−5")) == plain_number(normalize("-5")) == Decimal(-5)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("1e3", r"1 \times 10^{3}"),
        ("1 1/2", r"1\frac{1}{2}"),
        ("$x+1$", "x+1"),
        ("$1$ and $2$", "1 and 2"),
        ("2½", r"2\frac{1}{2}"),
        ("5²", "5^{2}"),
        ("x**2", "x^2"),
        ("ln 2", r"\ln  2"),
        ("sqrt(3)", r"\sqrt{3}"),
        ("f''(x)", "f_{primeprime}(x)"),
        (r"\ddot{x}_0", "x_{ddot0}"),
    ],
)
def test_rewritten(text: str, normal: str) -> None:
    assert normalize(text) == normal


@settings(deadline=None)
@given(st.text(max_size=1000) | st.text(alphabet="$*.\\()[]1, 0e/pi", max_size=1000))
def test_any_text(text: str) -> None:
    number = plain_number(normalize(text))
    assert number is None or number.is_finite()

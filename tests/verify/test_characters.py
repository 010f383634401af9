import pytest
from hypothesis import given
from hypothesis import strategies as st

from hacrl.verify.characters import plain_characters


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("5²", "5^{2}"), ("x₁₂", "x_{12}"), ("10⁻³", "10^{-3}"), ("½", " 1/2"), ("2¾", "2 3/4"),
        ("−5", "-5"), ("４２，０", "42,0"), ("90°", r"90^\circ "), ("√2", r"\sqrt{2}"),
        ("√(x+1)", r"\sqrt{x+1}"), ("∛8", r"\sqrt[3]{8}"), ("π", r"\pi "), ("λ", r"\lambda "),
        ("Ω", r"\Omega "), ("Α", "A"), ("𝑥", "x"), ("x ≤ 3", r"x \le  3"), ("20 ℃", r"20 ^\circ C"),
        ("f′", "f'"), ("1⁄2", "1/2"), ("a·b", r"a\cdot b"),
        ("a\u200bb", "ab"), ("Привет", "Привет"),
    ],
)  # fmt: skip
def test_mathematical_forms(text: str, plain: str) -> None:
    assert plain_characters(text) == plain


@given(st.text(max_size=200))
def test_any_text_has_plain_characters_that_stay(text: str) -> None:
    once = plain_characters(text)
    assert plain_characters(once) == once or not once.isascii()


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=100))
def test_ascii_stays_as_it_is(text: str) -> None:
    assert plain_characters(text) == text

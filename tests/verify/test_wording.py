import pytest
from hypothesis import given
from hypothesis import strategies as st

from hacrl.verify.names import named_values, split_list
from hacrl.verify.numerals import read_numeral, same_numeral
from hacrl.verify.wording import is_formula, same_words, with_commas


@pytest.mark.parametrize(
    "text",
    ["5", "x+1", "2xy", r"\frac{1}{2}", "(1, 2)", "[0,1)", r"\{1,2\}", "x<3", "x_1+x_2", "1,234",
     r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", "A", "A,B", "-5", "3/4", "x^{10}", "7,-7", "5!",
     r"\mathbb{R}", "|x|", "3!+2", "ab+c", r"\log_2 8", r"\frac12"],
)  # fmt: skip
def test_formulas(text: str) -> None:
    assert is_formula(text)


@pytest.mark.parametrize(
    "text",
    ["SSA", "xy", "no", "yes", "2024-01-05", "10-15", "1/2/2024", "1.2.3", "6:00", "H_2O", "NaCl",
     "2A3B", "x1", r"\angle ABC", r"\text{even}", "no solution", "S S A", "3 4", "red, blue",
     "+49 30-1234", "x = yes indeed", r"\unknown{x}", "5 €", "\u0663"],
)  # fmt: skip
def test_texts(text: str) -> None:
    assert not is_formula(text)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_numbers_joined_by_a_dash_are_text(first: int, second: int) -> None:
    assert not is_formula(f"{first}-{second}")
    assert is_formula(f"{first}+{second}")


@given(st.text(alphabet="abcXYZ", min_size=2, max_size=8), st.randoms())
def test_permuted_letters_are_other_words(word: str, random: object) -> None:
    assert same_words(word, word)
    backwards = word[::-1]
    assert not is_formula(word)
    assert same_words(word, backwards) == (word.lower() == backwards.lower()) or word != backwards


@given(st.text(max_size=100), st.text(max_size=100))
def test_any_texts_compare(a: str, b: str) -> None:
    assert same_words(a, a)
    assert same_words(a, b) == same_words(b, a)
    assert is_formula(a) in {True, False}
    assert split_list(a)
    assert isinstance(with_commas(a), str)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("x=1,y=2", [("x", "1"), ("y", "2")]),
        ("f(x, y) = 2x", [("f(x,y)", "2x")]),
        ("P(X=2)=0.3", [("P(X=2)", "0.3")]),
        ("x=2+3=5", [("x", "5")]),
        (r"\frac{dy}{dx}=3x", [(r"\frac{dy}{dx}", "3x")]),
        ("f_{prime}(x)=2", [("f_{prime}(x)", "2")]),
        ("x=(1,2)", [("x", "(1,2)")]),
        ("2x=4", None),
        ("x<3", None),
        ("x=1, 2", None),
        ("x=", None),
        ("5", None),
        (r"\sin x=2", None),
    ],
)
def test_named_values(text: str, values: list[tuple[str, str]] | None) -> None:
    assert named_values(text) == values


def test_numerals() -> None:
    for text, base in (("4210_5", 5), ("11_{2}", 2), (r"11_{\text{two}}", 2), ("1F_{16}", 16)):
        numeral = read_numeral(text)
        assert numeral is not None
        assert numeral.base == base
    for text in ("x_2", "8_8", "12_1", "5", "1_{37}", "x_n", "12_{}", ""):
        assert read_numeral(text) is None


@given(st.integers(0, 10**6), st.integers(2, 10), st.integers(2, 10))
def test_a_numeral_is_its_number(number: int, first: int, second: int) -> None:
    def written(base: int) -> str:
        digits, rest = "", number
        while rest:
            rest, digit = divmod(rest, base)
            digits = f"{digit}{digits}"
        return f"{digits or 0}_{{{base}}}"

    a, b = read_numeral(written(first)), read_numeral(written(second))
    assert a is not None
    assert b is not None
    assert a.value == b.value == number
    assert same_numeral(a, b) == (first == second or a.digits != b.digits)

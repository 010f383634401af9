r"""What the audit makes of golds: other spellings mean the same, changes never do.

Values are read here by means of their own, so that a mistake of the audit's reading shows.
"""

from __future__ import annotations

import random
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hacrl.audit.changes import changes, last_digit
from hacrl.audit.characters import letters_exchanged
from hacrl.audit.placing import in_a_box, not_answers, places
from hacrl.audit.shapes import Shape, read_gold, split_top
from hacrl.audit.spellings import spellings
from hacrl.verify.extract import extract_answer

INTEGERS = st.integers(-(10**9), 10**9)
DECIMALS = st.decimals(-1000, 1000, allow_nan=False, places=3).map(lambda d: format(d, "f"))
FRACTIONS = st.builds(
    lambda a, b, form: form.format(a=a, b=b),
    st.integers(1, 999),
    st.integers(2, 99),
    st.sampled_from([r"\frac{{{a}}}{{{b}}}", "{a}/{b}", r"-\frac{{{a}}}{{{b}}}", "-{a}/{b}"]),
)
FORMULAS = st.sampled_from(
    [r"2\sqrt{3}", "x^2+2x-7", r"\frac{x+3}{5}", "3n-4", r"\frac{\pi}{6}", "2^{10}+7", r"4+9i"]
)
SETS = st.lists(st.integers(-50, 50), min_size=2, max_size=5, unique=True)


def draw() -> random.Random:
    return random.Random(0)


def value(text: str) -> Fraction | None:
    """The value of a number, fraction or power of ten in any of the spellings of the audit."""
    if mixed := re.fullmatch(r"(-?)(\d+) (\d+)/(\d+)", text):
        whole, above, below = (int(n) for n in mixed.groups()[1:])
        return (-1 if mixed[1] else 1) * (whole + Fraction(above, below))
    text = re.sub(r"\\(?:text|mathbf|displaystyle)(?![a-z])|[${}\s]|\\,|\*\*", "", text)
    text = re.sub(r"apples|x=|^=", "", text)
    text = text.replace("−", "-").replace("\\!", "").rstrip(".").replace(",", "").removeprefix("+")
    text = text.removeprefix("=")
    return Fraction(text) if re.fullmatch(r"-?\d*\.?\d+(?:/\d+)?", text) else None


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        *[(t, Shape.NUMBER) for t in ("5", "-5", "1,234", r"10,\!080", ".5", "$5$", r"\$5", "5.")],
        *[(t, Shape.FRACTION) for t in (r"\frac12", r"-\frac{1}{2}", r"\dfrac{3}{4}", "3/4")],
        *[(t, Shape.UNIT) for t in (r"5\text{ cm}", r"90^\circ", r"50\%", "5 apples", "5 cm")],
        *[(t, Shape.OPTION) for t in (r"\text{(C)}", "(B)", "E", r"\textbf{(A)}")],
        *[(t, Shape.WORDS) for t in ("Evelyn", r"\text{even}", "New York", "SSA")],
        *[(t, Shape.TUPLE) for t in ("(1,2)", r"\left( 3, \frac{\pi}{2} \right)", "[0,1)")],
        (r"\{1,2,3\}", Shape.SET),
        *[(t, Shape.LIST) for t in ("1,2", r"\frac12, 3", "x=1,y=2")],
        *[(t, Shape.EQUATION) for t in ("x=5", "y=2x+1", r"\frac{dy}{dx}=3x")],
        *[(t, Shape.FORMULA) for t in ("x+1", "2024-01-05", r"x \ge 3", r"2\sqrt{3}", "8_9")],
    ],
)
def test_shapes(text: str, shape: Shape) -> None:
    assert read_gold(text).shape is shape


def test_parts() -> None:
    assert split_top(r"1, f(2,3), \{4,5\}") == ("1", "f(2,3)", r"\{4,5\}")
    assert split_top("1,234, 5") == ("1,234", "5")
    assert read_gold("[1, 2)").brackets == ("[", ")")


@given(INTEGERS.map(str) | DECIMALS | FRACTIONS)
def test_spellings_of_a_number_have_its_value(text: str) -> None:
    gold = read_gold(text)
    assert gold.value is not None
    found = dict(spellings(gold))
    assert found
    assert text not in found.values()
    for other in found.values():
        seen = value(other)
        assert seen is None or seen == gold.value


@given(INTEGERS.map(str) | DECIMALS | FRACTIONS)
def test_changes_of_a_number_have_another_value(text: str) -> None:
    gold = read_gold(text)
    for kind, other in changes(gold, draw()):
        seen = value(other)
        if " " not in other and "sqrt" not in other and "^" not in other:
            assert seen is None or seen not in (gold.value, 100 * gold.value), kind  # type: ignore[operator]


@given(SETS, st.booleans())
def test_changes_of_a_set_are_another_set(numbers: list[int], braces: bool) -> None:
    inner = ", ".join(map(str, numbers))
    gold = read_gold(rf"\{{{inner}\}}" if braces else inner)
    assert gold.shape is (Shape.SET if braces else Shape.LIST)

    def elements(text: str) -> set[int]:
        return {int(n) for n in re.findall(r"-?\d+", text)}

    made = list(changes(gold, draw()))
    assert made
    assert all(elements(text) != set(numbers) for _, text in made)
    for kind, text in spellings(gold):
        if kind != "full-width digits":
            assert elements(text.replace("−", "-")) == set(numbers), kind


@given(st.lists(st.integers(0, 9), min_size=2, max_size=4))
def test_a_tuple_is_permuted_only_if_that_changes_it(numbers: list[int]) -> None:
    gold = read_gold(f"({', '.join(map(str, numbers))})")
    for kind, text in changes(gold, draw()):
        found = [int(n) for n in re.findall(r"\d+", text)]
        assert found != numbers, kind
        if kind == "elements in another order":
            assert sorted(found) == sorted(numbers)


@given(st.text(alphabet="abcSAN", min_size=2, max_size=8))
def test_letters_exchanged_give_another_word_of_the_same_letters(word: str) -> None:
    found = letters_exchanged(word, draw())
    if len(set(word.lower())) == 1:
        assert found is None
    else:
        assert found is not None
        assert found.lower() != word.lower()
        assert sorted(found) == sorted(word)


@pytest.mark.parametrize(
    ("gold", "kind"),
    [
        ("3", "a fraction of it in words"),
        ("3", "a multiplier behind it"),
        ("SSA", "letters exchanged"),
        ("x=1,y=2", "values exchanged between names"),
        ("x=1,y=2", "values in another order"),
        ("[1,2)", "a bracket of another kind"),
        (r"144\text{ m}^3", "another power of the unit"),
        (r"5 \text{ cm}", "another unit"),
        (r"\frac{3}{4}", "turned upside down"),
        (r"\text{even}", "the opposite"),
        (r"\text{(C)}", "another letter"),
        ("N+1", "a variable renamed"),
        (r"\frac{dy}{dx}=3x", "a digit changed"),
        (r"\sin x", "another function"),
    ],
)
def test_the_change_is_made(gold: str, kind: str) -> None:
    assert kind in dict(changes(read_gold(gold), draw()))


@pytest.mark.parametrize(
    "gold",
    [r"\sin 30^\circ", r"\binom{5}{2}", "(-1)^{n}", r"\lfloor 2.5\rfloor", r"2 \pmod 5"],
)
def test_what_may_stay_the_same_is_not_changed(gold: str) -> None:
    assert "a digit changed" not in dict(changes(read_gold(gold), draw()))


def test_a_constant_of_integration_takes_up_what_is_added() -> None:
    assert "one more" not in dict(changes(read_gold("x^{2}+C"), draw()))


@given(FORMULAS | FRACTIONS | SETS.map(lambda numbers: ", ".join(map(str, numbers))))
def test_nothing_is_made_twice_and_all_is_drawn_alike(text: str) -> None:
    gold = read_gold(text)
    for made in (list(changes(gold, draw())), list(spellings(gold))):
        texts = [one for _, one in made]
        assert len(texts) == len(set(texts))
        assert gold.text not in texts
    assert list(changes(gold, draw())) == list(changes(gold, draw()))


@given(st.text(max_size=30) | FORMULAS | DECIMALS)
def test_any_text_can_be_read_and_changed(text: str) -> None:
    gold = read_gold(text)
    list(spellings(gold)), list(changes(gold, draw())), last_digit(gold)


def test_the_last_digit() -> None:
    assert last_digit(read_gold("40_9")) == "40_0"
    assert last_digit(read_gold(r"144\text{ m}^3")) == r"144\text{ m}^4"
    assert last_digit(read_gold("42")) is None
    assert last_digit(read_gold("x")) is None


@given(INTEGERS.map(str) | FRACTIONS | FORMULAS, st.sampled_from(["####", "Answer:", None]))
def test_an_answer_is_found_in_every_place(answer: str, marker: str | None) -> None:
    for kind, response in places(answer, marker):
        found = extract_answer(response, marker)
        assert found is not None, kind
        assert found.replace(" ", "").strip("*$") == answer.replace(" ", ""), kind


@given(INTEGERS.map(str), st.sampled_from(["####", None]))
def test_no_answer_is_found_where_there_is_none(answer: str, marker: str | None) -> None:
    for kind, response in not_answers(answer, marker):
        assert extract_answer(response, marker) is None, kind
    assert extract_answer(in_a_box(answer), marker) == answer

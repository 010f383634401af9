import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify import Math, VerifierPool

EQUAL = [
    ("1/3", r"\frac{1}{3}"), ("1/3", "0.333333"), (r"\frac13", "1/3"), ("0.5", "1/2"),
    (r"\pi/4", "pi/4"), (r"\frac{\pi}{4}", "pi/4"), (r"2\pi", "2pi"), (r"\pi", "π"),
    (r"\text{21}", "21"), ("21", r"\text{21}"), ("5", r"\mathbf{5}"), ("5", "**5**"), ("5", "5."),
    ("y=2x", "2x-y=0"), ("y=2x+1", "y = 1 + 2x"), ("2x+1", "y=2x+1"), ("x=5", "5"), ("5", "x=5"),
    ("#### 130,000", "$130,000"), ("130000", "130000.00"), ("130000", "130{,}000"),
    ("130000", r"130\,000"), ("18", "18 dollars"), ("18", r"18\text{ dollars}"),
    ("5", r"5 \text{ cm}"), ("90", r"90^\circ"), (r"50\%", "50"), ("50", "50%"), ("1/2", r"50\%"),
    ("1.5\\times 10^{3}", "1500"), ("1e3", "1000"), ("2.19e6", r"2.19\times10^6"),
    (r"2\sqrt{3}", r"\sqrt{12}"), (r"2\sqrt{3}", "2sqrt(3)"), ("(1,2)", r"\left( 1, 2 \right)"),
    (r"\{1,2\}", r"\{2,1\}"), ("1,2", "2,1"), ("1,2", "1 and 2"), (r"\pm 7", "7,-7"),
    ("7,-7", r"\pm 7"), ("x^2+2x+1", "(x+1)^2"), ("3+4i", "4i+3"), (r"\text{(A)}", "A"),
    (r"\text{Evelyn}", "Evelyn"), (r"3\frac{1}{2}", "7/2"), ("3/2", "1 1/2"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{bmatrix}1\\2\end{bmatrix}"),
    ("[1,2)", "[1, 2)"), ("x<3", r"(-\infty,3)"), (r"\emptyset", r"\varnothing"), ("-1", "−1"),
    ("27.0", "27"), ("-1./3", "-1/3"), ("2^{10}", "1024"), ("10!", "3628800"), (r"\log_2 8", "3"),
    (r"\infty", "infinity"), ("18", r"\frac{36}{2}"), ("-5", r"-\frac{10}{2}"), ("0", "-0"),
    ("7", "07"), ("07", "7"), ("18", "+18"), (r"\$5.50", "5.5"), ("5", "€5"), ("1/2", ".5"),
    (r"\frac{3}{4}", r"75\%"), (r"10\%", "0.1"), ("1.23e-4", "0.000123"), ("10^6", "1000000"),
    ("1,234,567", "1234567"), (r"1\,000\,000", "1000000"), ("x^2-1", "(x-1)(x+1)"),
    (r"\{1,2,3\}", "1,2,3"), (r"\binom{5}{2}", "10"), (r"\lfloor 2.5\rfloor", "2"),
    ("|-3|", "3"), ("C", r"\textbf{(C)}"), (r"x \in [1,2]", "[1,2]"), ("x>3", "3<x"),
    ("x=1,x=2", "1,2"), ("2:3", "2:3"),
    (r"(-\infty,0)\cup(1,\infty)", r"(-\infty, 0) \cup (1, \infty)"),
    (r"\frac \pi4", r"\frac{\pi}{4}"), ("np.arcsin(10/13)", r"\arcsin(\frac{10}{13})"),
    (r"L_{\odot}", r"L_\odot"), (r"\gamma^{2}-1", r"(\gamma-1)(\gamma+1)"), ("E_{1}", "E_1"),
    (r"\frac{1}{3}E_{1}+\frac{2}{3}E_{2}", r"\frac{E_1+2E_2}{3}"), ("t(0,4]", "(0,4]"),
    (r"m_{\max }=2", r"m_{max}=2"), (r"111, \! 111, \! 111", "111111111"), ("4210_5", "4210_{5}"),
    ("11_2", "3_{10}"),
]  # fmt: skip

DIFFERENT = [
    (r"\frac{1}{3^{90}}", r"\frac{1}{3^{91}}"), ("1/3^90", "1/3^91"), ("10^{-9}", "0"),
    ("0.0000001", "0.0000002"), (r"1.6\times 10^{-19}", r"1.7\times 10^{-19}"),
    ("1.6e-19", "1.6e-20"), (r"\pm 7", "7"), ("7", r"\pm 7"), (r"\{2,5,9\}", r"\{1,5,9\}"),
    ("2,5,9", "1,5,9"), ("1,2", "1,2,3"), ("1,2", "1"), ("5", "5,6"), ("5", "5 or 6"),
    ("5", "5 and 6"), ("100", r"100\text{ or }200"), ("(1,2)", "(2,1)"), ("(1,2)", "[1,2]"),
    ("[1,2)", "(1,2]"), ("5", "-5"), ("x=5", "y=5"), ("5", "x=6"), ("x<3", "x>3"),
    ("x<3", r"x\le3"), ("1/3", "0.33"), (r"\sqrt2", "1.41"), ("130000", "1,30,000"),
    ("123456789", "123456788"), ("0.5", "0.5000000001"), ("2x", "2y"), ("3", "3x"), ("2", "2 pi"),
    ("5", "5 million"), ("A", "B"), (r"\text{even}", r"\text{odd}"), (r"\text{Evelyn}", "Evel"),
    ("11:30", "11:45"), (r"9\%", "9.5"), ("18", r"\frac{37}{2}"), ("18", "81"), ("18", "1 8"),
    ("0", "1e-7"), ("0", "10^{-20}"), ("100", "10^3"), ("1/2", "2/1"), ("5", "5i"), ("3", "3!"),
    ("x+1", "x-1"), ("1", "1,1,1,2"), (r"\pi", "3.14"), (r"\pi", "22/7"), ("x=2", "x=-2"),
    ("[0,1]", "(0,1)"), ("1000", "1,00,0"), ("3", "3,000"), (r"10\%", "0.01"), ("A", "AB"),
    ("9.11", "9.9"), ("1e400", "1e401"), ("10^{400}", "10^{401}"), ("2^{1000}", "2^{1001}"),
    (r"\text{yes}", r"\text{no}"), ("4210_5", "4210_6"), ("I_1", "I_2"), ("E_{0}", "E_{1}"),
    (r"\frac{1}{3}E_{1}+\frac{2}{3}E_{2}", r"\frac{1}{3}E_{1}+\frac{1}{3}E_{2}"),
    (r"111, \! 111, \! 111", "111"), ("t(0,4]", "(0,5]"), (r"\frac\pi4", r"\frac\pi3"),
]  # fmt: skip

STRICT = [
    ("(1,2)", "1,2", Outcome.RIGHT),
    ("-1", "i^2", Outcome.WRONG),
    ("2", "7-5", Outcome.WRONG),
    ("xy", "yx", Outcome.WRONG),
    ("2/3", "2:3", Outcome.WRONG),
    ("11_2", "11", Outcome.WRONG),
    ("5", "5 m", Outcome.WRONG),
]


def prompt(gold: str) -> Prompt:
    return Prompt("t/0", "t", r"Put the answer in \boxed{}, for example \boxed{0}.", gold)


@pytest.fixture(scope="module")
def pool() -> Iterator[VerifierPool]:
    with VerifierPool({"t": Math()}, seconds=5.0) as pool:
        yield pool


def outcomes(pool: VerifierPool, pairs: list[tuple[str, str]]) -> list[Outcome]:
    rows = [(prompt(gold), f"so \\boxed{{{answer}}}") for gold, answer in pairs]
    return [verdict.outcome for verdict in pool.verify(rows)]


def test_equal_pairs(pool: VerifierPool) -> None:
    found = zip(EQUAL, outcomes(pool, EQUAL), strict=True)
    assert [pair for pair, outcome in found if outcome is not Outcome.RIGHT] == []


def test_different_pairs(pool: VerifierPool) -> None:
    found = zip(DIFFERENT, outcomes(pool, DIFFERENT), strict=True)
    assert [pair for pair, outcome in found if outcome is not Outcome.WRONG] == []


@pytest.mark.parametrize("answer", ["5}", "6} {5", r"6} \boxed{5", "{5", "5\\"])
def test_unbalanced_answers_are_wrong(pool: VerifierPool, answer: str) -> None:
    (verdict,) = pool.verify([(prompt("5"), f"#### {answer}")])
    assert verdict.outcome is Outcome.WRONG


def test_where_the_rule_is_strict_or_lenient_on_purpose(pool: VerifierPool) -> None:
    found = outcomes(pool, [(gold, answer) for gold, answer, _ in STRICT])
    assert found == [outcome for *_, outcome in STRICT]


def test_rewards_and_outcomes(pool: VerifierPool) -> None:
    rows = [
        (prompt("0"), "no box"),  # the prompt's example is not read
        (prompt("5"), r"\boxed{5}"),
        (prompt("5"), r"\boxed{6}"),
        (prompt("5"), "#### " + "x" * 2000),
        (prompt("x+1"), r"\boxed{\frac{}"),
        (prompt("x+1"), r"\boxed{\frac}"),
        (prompt(r"\frac{"), r"\boxed{5}"),
        (prompt(""), r"\boxed{5}"),
        (prompt("y" * 2000), r"\boxed{5}"),
    ]
    assert [(v.reward, v.outcome) for v in pool.verify(rows)] == [
        (0.0, Outcome.NO_ANSWER),
        (1.0, Outcome.RIGHT),
        (0.0, Outcome.WRONG),
        (0.0, Outcome.WRONG),
        (0.0, Outcome.NO_ANSWER),
        (0.0, Outcome.WRONG),
        (None, Outcome.NOT_VERIFIABLE),
        (None, Outcome.NOT_VERIFIABLE),
        (None, Outcome.NOT_VERIFIABLE),
    ]


def test_integers_are_read_as_math_verify_reads_them() -> None:
    from math_verify import parse

    from hacrl.verify.latex import read

    for text in ("0", "-0", "18", "-5", "1" * 40):
        ours, theirs = read(text), parse(f"\\boxed{{{text}}}", parsing_timeout=None)
        assert (type(ours), ours) == (type(theirs[0]), theirs[0])


def test_agents_with_different_forms_are_told_apart_from_agents_that_are_wrong() -> None:
    boxes = [rf"\boxed{{{n}}}" for n in (5, 5, 6, 5)]
    hashes = [f"#### {n}" for n in (5, 5, 6, 5)]
    same = [Outcome.RIGHT, Outcome.RIGHT, Outcome.WRONG, Outcome.RIGHT]
    assert [Math()(prompt("5"), text).outcome for text in boxes] == same
    assert [Math()(prompt("5"), text).outcome for text in hashes] == same
    strict = Math(marker=None)
    assert [strict(prompt("5"), text).outcome for text in boxes] == same
    assert [strict(prompt("5"), text).outcome for text in hashes] == [Outcome.NO_ANSWER] * 4


def test_hostile_answers_are_bounded() -> None:
    hostile = [
        "7^{7^{7^{7^{7}}}}",
        "9" * 20_000,
        "9" * 990,
        "9" * 990 + "/7",
        "100000000!",
        "9^{9^{9^{9}}} - 9^{9^{9^{9}}}",
        r"\binom{10^9}{5 \cdot 10^8}",
        "x" * 500,
        "{" * 400 + "5" + "}" * 400,
        r"\frac{1}{" * 80 + "2" + "}" * 80,
        "\u202e5",
        "٣",
        "1e999999999",
        "(" * 990,
        r"\sqrt{" * 150 + "}" * 150,
    ]
    rows = [(prompt("x+5"), f"\\boxed{{{answer}}}") for answer in hostile]
    with VerifierPool({"t": Math()}, seconds=0.5) as pool:
        good, *bad = pool.verify([(prompt("x+1"), r"\boxed{1+x}"), *rows])
        assert good.outcome is Outcome.RIGHT
        assert {v.outcome for v in bad} == {Outcome.WRONG, Outcome.TIMEOUT}
        assert {v.reward for v in bad} == {0.0}


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.text(max_size=60) | st.text(alphabet="\\{}fracsqt^_0x+-=,()", max_size=60), max_size=8
    )
)
def test_any_answer_has_an_outcome(pool: VerifierPool, texts: list[str]) -> None:
    for verdict in pool.verify([(prompt("x+1"), f"\\boxed{{{text}}}") for text in texts]):
        assert verdict.outcome is not Outcome.RIGHT or verdict.reward == 1.0


def test_gsm8k_golds_verify_against_themselves(pool: VerifierPool, data: Path) -> None:
    golds = _field(data / "gsm8k/test.jsonl", "answer")[:300]
    assert {v.outcome for v in pool.verify([(prompt(g), g) for g in golds])} == {Outcome.RIGHT}


def test_math500_golds_are_right_in_their_solutions(pool: VerifierPool, data: Path) -> None:
    path = data / "math500/test.jsonl"
    rows = list(zip(_field(path, "answer"), _field(path, "solution"), strict=True))[:100]
    assert {v.outcome for v in pool.verify([(prompt(g), s) for g, s in rows])} == {Outcome.RIGHT}


@pytest.mark.parametrize(
    "unit", ["\\boxed{", "1", "#### ", "\U0001f600", "\ud800", "\0", "$", ". "]
)
def test_long_responses_are_screened_quickly(unit: str) -> None:
    response = unit * (100_000 // len(unit)) + "}"
    start = time.process_time()
    verdict = Math(last_number=True)(prompt("5"), response)
    assert time.process_time() - start < 1.0
    assert verdict.outcome in {Outcome.WRONG, Outcome.NO_ANSWER}


def test_lone_surrogates_reach_the_worker(pool: VerifierPool) -> None:
    assert outcomes(pool, [("x+1", "\ud800")]) == [Outcome.WRONG]


def test_plain_numbers_need_no_worker() -> None:
    assert Math().screen(prompt("#### 1,000"), "#### 1000.0") == Verdict(
        1.0, Outcome.RIGHT, "1000.0"
    )


def _field(path: Path, name: str) -> list[str]:
    return [json.loads(line)[name] for line in path.read_text("utf-8").splitlines()]

r"""Pairs of golds and answers by the kind of mistake that they guard against."""

from collections.abc import Iterator

import pytest

from hacrl.records import Outcome, Prompt
from hacrl.verify import Math, VerifierPool

RIGHT = {
    "Unicode": [
        ("3.5", "3½"), ("1/2", "½"), ("½", "0.5"), ("25", "5²"), ("5²", "25"), ("x^2", "x²"),
        ("x_1", "x₁"), ("H₂O", "H_2O"), ("90", "90°"), ("90°", "90"), ("42", "４２"),
        ("1000", "１，０００"), (r"\sqrt{2}", "√2"), (r"\frac{\sqrt{2}}{2}", "√2/2"),
        (r"2\pi", "2π"),
        (r"\theta", "θ"), (r"x \geq 3", "x ≥ 3"), (r"A \cup B", "A∪B"), ("120000", "1.2×10⁵"),
        ("6+9\\sqrt{3}", "9√3 + 6"), ("-1", "－1"), ("2/3", "⅔"), (r"\frac{7}{3}", "2⅓"),
    ],
    "units": [
        ("5", "5 cm^2"), ("5", "5 m/s"), ("9.8", "9.8 m/s^2"), ("5", "5 €"), ("5", "5 hours"),
        ("12", r"12\text{ ft}^{2}"), ("5", "5 sq. ft."), ("5", "5 square units"), ("5", "5 units"),
        ("5 cm", "5"), ("5 cm", "0.05 m"), ("3 hours", "180 minutes"), ("5 m", r"5\text{ m}"),
        ("3.5 hours", "3 hours 30 minutes"), ("20 °C", "20 degrees Celsius"), ("5 CM", "5 cm"),
        (r"9.8 \mathrm{~m} / \mathrm{s}^{2}", r"9.8\text{ m/s}^2"), ("18", "18.00 dollars"),
        ("2000", "$2,000.00"), (r"2\pi", r"2\pi\text{ square inches}"), ("72", "72 degrees"),
        (r"3\sqrt{2}", r"3\sqrt{2}\text{ cm}"), ("0.5", "1/2 cup"), ("9/4", "2 1/4 cups"),
        ("5 units", r"5\text{ units}"), ("300 K", r"300\text{ K}"), ("1.5", "1.5 gallons"),
    ],
    "what is counted": [
        ("42", "42 apples"), ("42", r"\text{42 apples}"), ("12", "12 students"), ("7", "7 ways"),
        ("5", "5 people"), ("18", "18 eggs per day"), ("1", "1 apple"), ("1,234", "1234 people"),
        ("9", "9 pieces of cake"), ("6", "6 red marbles"),
    ],
    "number words": [
        ("1500000", "1.5 million"), ("1500000", r"1.5\text{ million}"), ("3/5", "3 fifths"),
        ("300000", "3 lakh"), ("36", "3 dozen"), ("36", "3 dozen eggs"), ("12", "twelve"),
        ("45", "forty-five"), ("2/3", "two thirds"), ("5000000", "$5 million"),
        ("1/2", "50 percent"),
        ("5000000", "5 million dollars"), ("3", r"3\text{ percent}"), ("0.003", "3 thousandths"),
    ],
    "text": [
        ("SSA", "SSA"), ("SSA", r"\text{SSA}"), ("Yes", "yes"), ("TRUE", "true"), ("even", "Even"),
        ("no solution", "No Solution"), ("true", "True"), ("6:00", "6:00"), ("1:2", "1 : 2"),
        ("4:30 p.m.", "4:30 PM"), ("June 20", "June 20"), ("B", r"\textbf{(B)}"), ("xy", "x y"),
        ("2024-01-05", "2024-01-05"), ("10-15", "10–15"), ("555-1234", "555-1234"),
        (r"\angle ABC", r"\angle A B C"), ("A,C,F", r"\text{F, A, C}"),
    ],
    "names": [
        ("x=1,y=2", "y=2,x=1"), ("x=1,y=2", "(1,2)"), ("(1,2)", "x=1,y=2"), ("(1,2)", "y=2,x=1"),
        ("x=1,y=2", "x=1 and y=2"), ("x=1, y=2", "1,2"), ("x=2,x=3", "x=3 or x=2"),
        ("x=2,x=3", "3,2"), ("m=3,b=4", "(3,4)"), ("x=5", "x=2+3=5"), ("5", "2+3=5"),
        ("f(x)=2x+1", "f(x)=1+2x"), ("P(X=2)=0.3", "P(X=2) = 3/10"),
    ],
    "equations": [
        (r"\frac{dy}{dx}=3x", r"\frac{dy}{dx} = 3 x"), (r"\frac{dy}{dx}=3x", "3x"),
        ("y'=3x", "y' = 3x"), (r"\dot{x}=2", r"\dot x=2"), ("y=2x", "x=y/2"), ("y=1/x", "xy=1"),
        ("x^2+y^2=1", "y^2=1-x^2"), ("2x+4y=6", "x+2y=3"), (r"\sin x=2", r"2=\sin x"),
        ("y=2x", "2x-y=0"),
    ],
    "inequalities": [
        ("x>3", "2x>6"), ("1<x<3", "3>x>1"), ("(1,3)", "1<x<3"), ("(-\\infty,3)", "x<3"),
        ("x \\in [0,1]", r"0\le x\le 1"), ("[3,\\infty)", "x ≥ 3"),
    ],
    "functions": [
        (r"\ln 2", "ln 2"), ("3/2", r"{3 \over 2}"), (r"\frac1{\sqrt n}", r"\sqrt{1/n}"),
        ("x^2", "x**2"),
        (r"\sin 2x", "2sin(x)cos(x)"), (r"\sin^2 x+\cos^2 x", "1"), ("42", "=42"),
    ],
    "bases": [
        ("8_9", "8_{9}"), ("11_2", r"11_{\text{two}}"), ("11_2", "3_{10}"), ("11_2", "3"),
        ("-11_2", "-3"),
    ],
    "capitals": [("N", "N"), ("N+1", "1+N"), ("n", "n"), ("E_1", "E_{1}")],
}  # fmt: skip

WRONG = {
    "units": [
        ("5 cm", "5 m"), ("5 cm^2", "5 cm^3"), (r"144\text{ m}^3", r"144\text{ m}^4"),
        ("$5", "5 €"),
        ("5 hours", "5 minutes"), ("5 kg", "5 lb"), ("3 dollars", "3 cents"), ("5 units", "5 cm"),
        ("20 degrees Celsius", "20 degrees Fahrenheit"), ("5 apples", "5 pears"), ("5", "5 m"),
        ("5 units", "5 square units"), (r"5\text{ m/s}", r"5\text{ m/s}^2"), ("5", "5 x"),
        ("9 a.m.", "9 p.m."), ("9 a.m.", "9"),
    ],
    "number words": [
        *(("3", f"3 {word}") for word in (
            "fifths", "lakh", "million", "dozen", "squared", "times", "or more", "less", "cubed",
            "factorial", "hundredths", "crores", "tens", "mil", "bn", "plus", "gross", "score",
            "halves", "minus 1", "doubled", "mod 5", "k", "M", "googol", "twos", "fourths",
            "billion people", "percent of x", "quintillion", "thousand", "dozens of eggs", "more",
            "times as many", "repeating", "squares less", "remainder 2", "below zero", "and a half",
        )),
        ("1.5", r"1.5\text{ million}"), ("3", r"3\text{ fifths}"), ("3", "3rd"),
        ("3", "at least 3"),
        ("3", r"3\text{rd}"), ("3", "more than 3"), ("3", "not 3"), ("12", "twelve hundred"),
        ("1.5", r"1.5\text{ M}"), ("12", r"\text{12 thousand}"),
    ],
    "text": [
        ("SSA", "SAS"), ("ASA", "AAS"), ("abc", "cab"), (r"\text{SSA}", "SAS"), ("ACF", "FAC"),
        (r"\angle ABC", r"\angle ACB"), (r"\triangle ABC", r"\triangle ACB"), ("listen", "silent"),
        ("no", "on"), ("2A3B", "3A2B"), ("HHT", "HTH"), ("S S A", "S A S"), ("A1", "A2"),
        ("red, blue", "blue, red"), ("first", "second"), ("True", "False"),
        ("SSA, AAS", "SAS, AAS"),
    ],
    "dates, ranges, numbers in a row": [
        ("2024-01-05", "2018"), ("2018", "2024-01-05"), ("10-15", "-5"), ("555-1234", "-679"),
        ("1/2/2024", "1/4048"), ("3-4", "-1"), ("2024-01-05", "2024-05-01"), ("1.2.3", "0.72"),
        ("(555) 123-4567", "-4444"), ("49 30", "30 49"), ("3 4", "12"), ("11:30", "30:11"),
        ("1,000-2,000", "-1000"), ("3:4", "4:3"), ("05.01.2024", "10.12"), ("10 – 15", "-5"),
    ],
    "names": [
        ("x=1,y=2", "(2,1)"), ("x=1,y=2", "x=2,y=1"), ("x=1,y=2", "2,1"), ("(1,2)", "x=2,y=1"),
        ("(1,2)", "y=1,x=2"), ("x=1,y=2", "a=1,b=2"), ("x=1,y=2", "x=1"), ("m=3,b=4", "m=4,b=3"),
        ("P(X=2)=0.3", "P(X=3)=0.3"), ("P(X=2)=0.3", "P(X=2)=0.4"), ("5", "6=5"), ("2,2", "2"),
    ],
    "equations": [
        (r"\frac{dy}{dx}=3x", r"\frac{dy}{dx}=5x"), (r"\frac{dy}{dx}=3x", r"\frac{dx}{dy}=3x"),
        ("f(x)=3x", "f(x)=5x"), ("f(x)=3x", "g(x)=3x"), ("y'=3x", "y'=5x"), ("y'=3x", "y=3x"),
        ("f'(x)=2x", "f(x)=2x"), ("y''=3", "y'=3"), (r"\dot x=2x", r"\dot x=3x"),
        (r"\frac{d^2y}{dx^2}=6", r"\frac{d^2y}{dx^2}=7"), ("f(2)=5", "f(3)=5"),
        ("f(2)=5", "f(2)=7"),
        (r"\frac{\partial f}{\partial x}=2y", r"\frac{\partial f}{\partial x}=3y"),
        (r"\sin x=2", r"\cos x=3"), (r"\sin x=2", r"\sin x=3"), ("x^2=-1", "x^2=-2"),
        ("e^x=-1", "e^x=-2"), ("|x|=-1", "|x|=-2"), (r"\sqrt{x}=-1", r"\sqrt{x}=-2"),
        (r"\log x=2", r"\log x=3"), (r"\lim_{x\to0}f(x)=1", r"\lim_{x\to0}f(x)=2"),
        ("a_n=2n", "a_n=3n"), ("x_1'=2", "x_1=2"),
    ],
    "inequalities": [
        (r"\sin x<-2", r"\cos x<-3"), ("x^2<-1", "x^2<-2"), ("A>B>C", "C>B>A"), ("A<B", "B<A"),
        (r"x \geqslant 2", r"w \geqslant 2"), ("1<x<3", "1<y<3"), (r"x\in[0,1]", "0<=y<=1"),
        ("x<3", "x<4"), ("x<3", r"x \le 3"), ("x<3", "-x<-3"), ("x>3", "x=3"),
    ],
    "functions": [("|x|", "x"), (r"\sqrt{x^2}", "x"), ("(-1)^n", "1"), ("x/2", "2/x")],
    "bases": [
        ("8_9", "8_{10}"), ("11_2", "11"), ("11", "11_2"), ("10_8", "10_{9}"), ("4210_5", "4210"),
        ("101_2", "101_3"), ("25_7", "25"), ("40_9", "40_0"),
        ("-221_3", "-221_4"), ("101_2+1", "101_3+1"), ("0.6_9", "0.6_8"),
    ],
    "capitals": [
        ("N", "n"), ("n", "N"), ("N+1", "n+1"), ("E", "e"), ("2X", "2x"), ("X=5", "x=5"),
        (r"\{N\}", r"\{n\}"), ("F(x)", "f(x)"), (r"\frac{V}{R}", r"\frac{v}{r}"), ("AB", "ab"),
        (r"\Omega", r"\omega"), ("A,B", "a,b"), (r"\Delta", r"\delta"), ("e^X", "e^x"),
        ("N<3", "n<3"),
        ("[N,1)", "[n,1)"), (r"\Gamma+1", r"\gamma+1"),
    ],
    "lists": [
        ("1,2", "1,2,2"), ("(0,1)", "(1,0)"), ("(1,2),(3,4)", "(1,2),(3,5)"), ("[0,1]", "[1,0]"),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def pool() -> Iterator[VerifierPool]:
    with VerifierPool({"t": Math()}, seconds=20.0) as pool:
        yield pool


def outcomes(pool: VerifierPool, pairs: list[tuple[str, str]]) -> list[Outcome]:
    rows = [(Prompt("t/0", "t", "", gold), f"so \\boxed{{{answer}}}") for gold, answer in pairs]
    return [verdict.outcome for verdict in pool.verify(rows)]


@pytest.mark.parametrize("kind", RIGHT)
def test_right(pool: VerifierPool, kind: str) -> None:
    found = zip(RIGHT[kind], outcomes(pool, RIGHT[kind]), strict=True)
    assert [pair for pair, outcome in found if outcome is not Outcome.RIGHT] == []


@pytest.mark.parametrize("kind", WRONG)
def test_wrong(pool: VerifierPool, kind: str) -> None:
    found = zip(WRONG[kind], outcomes(pool, WRONG[kind]), strict=True)
    assert [pair for pair, outcome in found if outcome is not Outcome.WRONG] == []


@pytest.mark.parametrize("kind", [*RIGHT, *WRONG])
def test_every_gold_is_right_as_an_answer(pool: VerifierPool, kind: str) -> None:
    golds = [gold for gold, _ in (*RIGHT.get(kind, []), *WRONG.get(kind, []))]
    found = zip(golds, outcomes(pool, [(gold, gold) for gold in golds]), strict=True)
    assert [gold for gold, outcome in found if outcome is not Outcome.RIGHT] == []


def test_what_the_parser_cannot_read_is_not_verifiable(pool: VerifierPool) -> None:
    assert (
        outcomes(pool, [(r"\frac{", "5"), (r"5^{", "5"), ("(1,", "1")])
        == [Outcome.NOT_VERIFIABLE] * 3
    )

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify import Choice

RIGHT = [  # the gold is B
    "B", "b", "(B)", "[B]", "**B**", "B.", "B)", "$B$", " B \n",
    r"\boxed{B}", r"\boxed{b}", r"\boxed{(B)}", r"\boxed{\text{B}}", r"\boxed{\textbf{(B)}}",
    r"\boxed{B. Paris}", r"\boxed{B: Paris}", r"\boxed{(B) Paris}", r"\boxed{\text{B) Paris}}",
    r"\boxed{A} no, \boxed{B}", r"Answer: A, but \boxed{B}", "#### B", "#### (b) Paris",
    "Answer: B", "answer: (b)", "**Answer:** B", "**Answer: B**", "Answer: **B**", "Answer:\n\nB",
    "The answer is B.", "The correct answer is (B) Paris.", "so the final answer is: **B**",
    "The correct option is B", "My choice: B", "The answer would be B", "The answer is option B",
    "The answer is B because Paris is the capital", "Answer: B, because A is wrong",
    "Answer: A. No, wait.\nAnswer: B", "A is too small and C is too large.\n\nB",
    "A is not it.\n**B**", "<think>Answer: A</think>Answer: B", "Answer = B", "Answer: $B$",
    "**Answer**: B\nParis is the capital, not A.", "__Answer__ : (B)", "*Answer:* **B**\n\nC",
    "### Answer\nB", "### Final Answer\n\n**B**\n\nThe others are not.", "#### Final Answer\nB",
    r"\textbf{Answer}: B", r"\textbf{Answer:} (B) as A is", "<b>Answer</b>: B", 'Answer: "B"',
    "**Answer:**\n\nB\n\n**Explanation:** A is wrong.", "Answer → B", "Answer - B", "Answer (B)",
    "> Answer: B", r"Answer: \(\text{B}\)", "Answer: B\n\n#### Explanation\nA is wrong.",
    "**Answer**\n**B. Paris**\nIt is a city.", "Answer：Ｂ", "Ⓑ", "**Correct option:** *B*",
    r"\textbf{(B) }12", r"\boxed{\textbf{(B) }12}", r"$\textbf{(B)}~12$", "B. Paris", "(B) Paris",
    "B) Paris", "**B. Paris**", "Paris is the capital.\n\nB. Paris", "#### B ####", "**#### B**",
    "The answer is B, a city.", "Answer: B - Paris", "The correct answer is: B",
]  # fmt: skip

NO_ANSWER = [
    "", "Paris", "I do not know", r"\boxed{A, B}", r"\boxed{a,b}", r"\boxed{A or B}",
    r"\boxed{AB}", r"\boxed{Paris}", r"\boxed{F}", "Answer: B or C", "Answer: (B) and (C)",
    "Answer: B/C", "the answer is a number", "The answer is A lovely city", "A lovely city",
    "B is right", "A. London\nB. Paris", "<think>Answer: B", "Answer: F", "Answer:", "####",
    "#### B or C", "**Answer**: A or B", "**Answer**\n\nI cannot tell", "A) London\n\nB) Paris",
    "The answer - as we saw - is a city", "B - or not", "(A) London\nThe other one is\n(B) Paris",
    "<think>Answer: B", "<thinking>\n**Answer**: B",
    "Answer: none of them", "**", "1", "Both (A) and (B) hold",
]  # fmt: skip


def prompt(gold: str) -> Prompt:
    return Prompt("t/0", "t", r"Say (A), (B) or \boxed{C}.", gold)


@pytest.mark.parametrize("response", RIGHT)
def test_forms_of_an_answer(response: str) -> None:
    assert Choice()(prompt("B"), response) == Verdict(1.0, Outcome.RIGHT, "B")
    assert Choice(wrong=-1.0)(prompt("C"), response) == Verdict(-1.0, Outcome.WRONG, "B")


@pytest.mark.parametrize("response", NO_ANSWER)
def test_no_single_letter_is_no_answer(response: str) -> None:
    assert Choice()(prompt("B"), response) == Verdict(0.0, Outcome.NO_ANSWER)


@pytest.mark.parametrize(
    ("gold", "letter"),
    [
        *[(text, "B") for text in ("B", "b", "(B)", "B. Paris", "1", "#### B", r"\boxed{1}")],
        ("0", "A"),
        ("4", "E"),
    ],
)
def test_forms_of_a_gold(gold: str, letter: str) -> None:
    assert Choice().gold(gold) == letter
    assert Choice()(prompt(gold), f"Answer: {letter}").outcome is Outcome.RIGHT


@pytest.mark.parametrize("gold", ["", "5", "-1", "F", "Paris", "A or B", "99"])
def test_other_golds_are_not_verifiable(gold: str) -> None:
    assert Choice()(prompt(gold), "Answer: A") == Verdict(None, Outcome.NOT_VERIFIABLE)


def test_options_may_be_more_or_others() -> None:
    assert Choice(options="ABCDEFGHIJ")(prompt("9"), "Answer: J").outcome is Outcome.RIGHT
    assert Choice(options="YN")(prompt("Y"), "(N)").outcome is Outcome.WRONG


@settings(deadline=None)
@given(st.text() | st.text(alphabet="ABCabc()[].*\\boxed{}# \nanswer:isor,"))
def test_any_text_names_an_option_or_none(text: str) -> None:
    answer = Choice().answer(text)
    assert answer is None or answer in "ABCDE"


@pytest.mark.parametrize("unit", ["answer is ", "A, ", "(", "*", "answer", "\n", "\\boxed{A", "é"])
def test_long_responses_take_little_time(unit: str) -> None:
    start = time.process_time()
    Choice().answer(unit * (100_000 // len(unit)))
    assert time.process_time() - start < 1.0

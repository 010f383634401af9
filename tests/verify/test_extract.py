import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hacrl.verify.extract import extract_answer, extract_gold


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"so \boxed{5}.", "5"),
        (r"\boxed{3} no, \boxed{5}", "5"),  # the last
        (r"\boxed{\frac{1}{\sqrt{2}}}", r"\frac{1}{\sqrt{2}}"),
        (r"\fbox{5}", "5"),
        (r"\boxed {5}", "5"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"\boxed{\left\{ 1 \right.}", r"\left\{ 1 \right."),
        (r"\boxed{ x = \boxed{5} }", r"x = \boxed{5}"),  # closed last
        (r"\boxed{5} and \boxed{}", "5"),  # an empty box is no box
        (r"\boxed{5} and \boxed{ { } }", "5"),
        (r"\boxed{}", None),
        (r"\boxed{5} and \boxed{6", "5"),  # nor is an unclosed one
        (r"\boxed{6 and \boxed{5}", "5"),
        (r"} } \boxed{5}", "5"),
        ("2+2 is 4\n#### 4", "4"),
        ("#### 3\n#### 4\nbye", "4"),
        ("####\n4", "4"),
        (r"#### 4 but \boxed{5}", "5"),  # a box precedes a marker
        ("####", None),
        ("the answer is 4", None),
        ("", None),
        (r"\boxed 42", "42"),  # without braces
        (r"so $\boxed 42$.", "42"),
        (r"\boxed -3, as", "-3"),
        (r"\boxed \frac{1}{2}", r"\frac{1}{2}"),
        (r"\boxed x", "x"),
        (r"\boxed{1} no, \boxed 2.", "2"),
        ("in \\boxed format: #### 5", "5"),
        ("#### 42 ####", "42"),
        ("#### 42\n\n####", "42"),
        ("####42####", "42"),
        ("x ####", None),
        ("**#### 42**", "42"),
        ("__#### 42__.", "42"),
        (r"\textbf{#### 42}", "42"),
        ("**The answer:** #### 42", "42"),
        ("##### 42", "42"),
        ("#### Final Answer\n42", "42"),
        ("#### **Final Answer:**\n\n$$\n42\n$$", "42"),
        ("#### Answer\n\n**42**", "**42**"),
        ("#### Final Answer: 42", "42"),
        ("#### The answer is 42", "42"),
        ("#### So, the final answer is: **42**", "**42**"),
        ("#### 42 I hope this helps.", "42"),
        ("#### 42. Let me know if you have questions!", "42"),
        ("#### 12 The total number of eggs is 12.", "12"),
        ("#### 42 is the final answer.", "42"),
        ("#### .000067 I hope this helps.", ".000067"),
        ("#### 42 because it is", "42"),
        ("#### 3.5 hours. Thank you!", "3.5 hours"),
        (r"#### \frac{1}{2} I hope it helps", r"\frac{1}{2}"),
        ("#### 42 apples", "42 apples"),  # a noun or a unit is for the verifier to judge
        ("#### $18 per day", "$18 per day"),
        ("#### 5 cm^2", "5 cm^2"),
        ("#### New York City", "New York City"),
        ("#### St. Louis", "St. Louis"),
        ("#### 1, 2 and 3", "1, 2 and 3"),
        (r"\boxed{Answer: 42}", "42"),
        (r"\boxed{\text{Answer}}", r"\text{Answer}"),
        (r"<think>\boxed{4}</think> \boxed{5}", "5"),
        (r"\boxed{4}</think> 5", None),  # the template opened the block
        (r"<think>so \boxed{4}", None),  # cut by the length limit
        (r"<think>a</think>\boxed{4}<think>hm", None),
        (r"<think>a</think>\boxed{3}<think>b</think>\boxed{4}", "4"),
    ],
)
def test_rule(text: str, answer: str | None) -> None:
    assert extract_answer(text, "####") == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("the answer is 4", "4"),
        ("from 3 to 1,234.50 dollars.", "1,234.50"),
        ("10-3 = -7", "-7"),
        ("10-3", "3"),
        ("it is 3/4.", "3/4"),
        ("I paid $5, then.", "5"),
        ("none", None),
        ("3\n#### 4\n5", "4"),
    ],
)
def test_last_number_only_where_allowed(text: str, answer: str | None) -> None:
    assert extract_answer(text, "####", last_number=True) == answer


def test_no_marker() -> None:
    assert extract_answer("#### 4", None) is None
    assert extract_answer("Answer: 4", "Answer:") == "4"


def test_a_marker_that_is_a_tag_is_closed_by_its_end() -> None:
    for text in ("<answer>42</answer>", "<answer>\n42\n</answer>", "so <answer> 42 </answer> bye"):
        assert extract_answer(text, "<answer>") == "42"


def test_gold_is_found_by_the_same_rule_or_is_the_answer() -> None:
    assert extract_gold("3 + 4 = 7\n#### 7", "####") == "7"
    assert extract_gold(r"thus \boxed{7}", "####") == "7"
    assert extract_gold(" 7 ", "####") == "7"
    assert extract_gold("Answer: 7", "####") == "7"
    assert extract_gold("**Final answer:** 7", None) == "7"
    assert extract_gold("The answer is 7 cm", "####") == "7 cm"
    assert extract_gold("about 7 hours", "####") == "about 7 hours"
    assert extract_gold("Answer:", "####") == "Answer:"


@settings(deadline=None)
@given(st.text() | st.text(alphabet="\\{}bxoed# 1<think>/-,."))
def test_any_text_has_an_answer_or_none(text: str) -> None:
    for last_number in (False, True):
        answer = extract_answer(text, "####", last_number)
        assert answer is None or (answer and answer == answer.strip() and answer in text)


@settings(deadline=None)
@given(st.recursive(st.just("1"), lambda inner: inner.map(lambda s: "\\frac{" + s + "}{2}")))
def test_nested_braces_come_back_whole(content: str) -> None:
    assert extract_answer("so \\boxed{" + content + "} done", "####") == content


@pytest.mark.parametrize(
    "unit",
    [
        "{",
        "}",
        "\\boxed{",
        "\\",
        "1",
        "1,",
        "-",
        "#",
        " ",
        "\n",
        "<think>",
        "</think>",
        "é",
        "\\boxed{ }",
        "\\boxed 1",
        "#### ",
        "####\n",
        "answer: ",
        "**",
        "#### 1 I ",
        "[THINK]",
    ],
)
@pytest.mark.parametrize("tail", ["", "}" * 20_000])
def test_linear_time(unit: str, tail: str) -> None:
    text = unit * (100_000 // len(unit)) + tail
    start = time.process_time()
    extract_answer(text, "####", last_number=True)
    assert time.process_time() - start < 1.0

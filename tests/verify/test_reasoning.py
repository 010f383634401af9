import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hacrl.verify import Choice, Code, Exact, Math
from hacrl.verify.extract import extract_answer
from hacrl.verify.reasoning import after_reasoning, begun_reasoning

PAIRS = [
    ("<think>", "</think>"),
    ("<think>\n", "\n</think>"),
    ("<Thinking>", "</Thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<seed:think>", "</seed:think>"),
    ("<longcat_think>", "</longcat_think>"),
    ("<think:opensource>", "</think:opensource>"),
    ("[THINK]", "[/THINK]"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("◁think▷", "◁/think▷"),
    ("<|channel>thought\n", "<channel|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
]


@pytest.mark.parametrize(("opening", "end"), PAIRS)
def test_what_is_cut_is_no_answer_and_what_is_closed_is_read(opening: str, end: str) -> None:
    cut = rf"{opening}I try \boxed{{42}} but let me check"
    assert extract_answer(cut, "####", last_number=True) is None
    assert extract_answer(rf"{cut}{end}So \boxed{{43}}.", "####") == "43"
    assert extract_answer(rf"{cut}{end}So \boxed{{43}}. {opening}Hm", "####") is None
    assert extract_answer(rf"\boxed{{41}} {end}So", "####") is None, "closed, not opened here"
    assert Choice().answer(f"{opening}Answer: B") is None
    assert Choice().answer(f"{opening}Answer: B{end}Answer: C") == "C"


@pytest.mark.parametrize(
    "text", ["a < think > b", "1 <b>2</b> 3", "think: 5", "[think] 5", "<answer>5", "thought</p>"]
)
def test_other_text_is_no_reasoning(text: str) -> None:
    assert after_reasoning(text) == text


@pytest.mark.parametrize(("opening", "end"), PAIRS)
def test_a_prompt_may_leave_reasoning_open(opening: str, end: str) -> None:
    turn = "<|user|>1+1?<|end|><|assistant|>"
    control = ("<|user|>", "<|end|>", "<|assistant|>")

    def begun(prompt: str, question: str = "1+1?") -> str:
        return begun_reasoning(prompt, question, control)

    assert begun(turn + opening) == opening
    assert begun(f"{turn}{opening} \n") == f"{opening} \n"
    assert begun(f"{turn}{opening}Okay, ") == f"{opening}Okay, ", "a beginning that goes on"
    assert begun(turn) == ""
    assert begun(f"{turn}{opening}\n\n{end}\n\n") == "", "thinking is off"
    asked = f"Begin with {opening.strip()} please"
    assert begun(f"<|user|>{asked}<|end|><|assistant|>", asked) == "", "the question speaks of it"
    assert begun(f"{asked}<|user|>1+1?<|end|><|assistant|>") == "", "so does the system message"
    assert begun(f"<|user|>1+1? {asked}<|end|><|assistant|>") == "", "or the template"
    assert begun(f"1+1?\n{opening}", f"1+1?\n{opening}") == opening, "a plain prompt ends in it"


def test_every_verifier_reads_what_follows_reasoning_alone() -> None:
    from hacrl.records import Outcome, Prompt

    prompt = Prompt("t/0", "t", "?", "B")
    for verifier in (Math(), Exact(), Exact(marker=None), Choice(), Code()):
        assert verifier(prompt, r"[THINK]\boxed{B} B").outcome is Outcome.NO_ANSWER


@given(st.text(alphabet="<think>/[THINK]| a") | st.text())
def test_what_is_read_is_the_end_of_the_text(text: str) -> None:
    seen = after_reasoning(text)
    assert seen is None or text.endswith(seen)
    assert after_reasoning("<think>" + text) in (None, seen)


@pytest.mark.parametrize("unit", ["<think>", "</think>", "<", "<|channel", "[THINK", "<seed:"])
def test_linear_time(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    start = time.process_time()
    after_reasoning(text)
    begun_reasoning(text, "?")
    assert time.process_time() - start < 2.0

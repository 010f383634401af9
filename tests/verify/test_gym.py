from collections.abc import Iterator
from typing import Any

import pytest
from reasoning_gym.factory import create_dataset

from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify import ReasoningGym, VerifierPool

NAMES = ["chain_sum", "letter_counting", "countdown", "gsm_symbolic", "rotate_matrix"]


def problem(name: str, **metadata: Any) -> Prompt:
    entry = create_dataset(name, seed=7, size=1)[0]
    # Not every generator says who it is; whoever makes the prompts adds it.
    found = entry["metadata"] | {"source_dataset": name} | metadata
    return Prompt(f"{name}/0", name, entry["question"], str(entry["answer"]), metadata=found)


@pytest.fixture(scope="module")
def pool() -> Iterator[VerifierPool]:
    verifiers = {name: ReasoningGym() for name in [*NAMES, "t"]}
    with VerifierPool(verifiers, seconds=1.0) as pool:
        yield pool


def test_golds_are_right_and_sentences_are_read_by_our_rule(pool: VerifierPool) -> None:
    prompts = [problem(name) for name in NAMES]
    for form in ("\\boxed{%s}", "#### 0 no, \\boxed{%s}"):
        rows = [(prompt, form % prompt.gold) for prompt in prompts]
        assert [v.outcome for v in pool.verify(rows)] == [Outcome.RIGHT] * len(NAMES)
    (verdict,) = pool.verify([(prompts[0], f"it is {prompts[0].gold}")])
    assert verdict == Verdict(0.0, Outcome.NO_ANSWER)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("chain_sum", "it is {gold}"),  # 0.25 for containing the gold
        ("gsm_symbolic", "17.5"),  # 0.01 for being a number
        ("countdown", "1 + 1"),  # 0.05 for being an expression
    ],
)
def test_a_part_of_the_credit_is_wrong(pool: VerifierPool, name: str, answer: str) -> None:
    prompt = problem(name)
    (verdict,) = pool.verify([(prompt, f"\\boxed{{{answer.format(gold=prompt.gold)}}}")])
    assert (verdict.reward, verdict.outcome) == (0.0, Outcome.WRONG)


def test_the_score_may_become_the_reward() -> None:
    prompt = problem("chain_sum")
    gold = len(prompt.gold)
    response = prompt.gold + "x" * gold  # half of it is the gold
    lenient = ReasoningGym(marker=None, threshold=0.5, partial=True)
    assert lenient(prompt, response) == Verdict(0.5, Outcome.RIGHT, response)
    strict = ReasoningGym(marker=None, partial=True, wrong=-1.0)
    assert strict(prompt, response) == Verdict(0.0, Outcome.WRONG, response)
    assert strict(prompt, prompt.gold) == Verdict(1.0, Outcome.RIGHT, prompt.gold)


def test_without_a_marker_the_whole_response_is_the_answer() -> None:
    prompt = problem("chain_sum")
    verifier = ReasoningGym(marker=None)
    assert verifier(prompt, f"<think>0</think>{prompt.gold}\n").outcome is Outcome.RIGHT
    assert verifier(prompt, f"<think>{prompt.gold}").outcome is Outcome.NO_ANSWER


@pytest.mark.parametrize(
    "form", ["#### **{}**", "#### ${}$", r"\boxed{{\text{{{}}}}}", "**#### {}**"]
)
def test_markup_is_no_part_of_an_answer(form: str) -> None:
    prompt = problem("chain_sum")
    assert ReasoningGym()(prompt, form.format(prompt.gold)).outcome is Outcome.RIGHT


def test_the_name_may_come_from_the_recipe() -> None:
    prompt = problem("chain_sum", source_dataset=None)
    assert ReasoningGym("chain_sum")(prompt, f"#### {prompt.gold}").outcome is Outcome.RIGHT
    with pytest.raises(ValueError, match="names no generator"):
        ReasoningGym()(prompt, f"#### {prompt.gold}")


def test_scorers_that_raise_are_scorer_errors(pool: VerifierPool) -> None:
    bare = Prompt("t/0", "t", "?", "1", metadata={"source_dataset": "sudoku"})
    unknown = Prompt("t/1", "t", "?", "1", metadata={"source_dataset": "no_such"})
    nameless = Prompt("t/2", "t", "?", "1")
    rows = [(prompt, "#### 1") for prompt in (bare, unknown, nameless)]
    assert {v.outcome for v in pool.verify(rows)} == {Outcome.SCORER_ERROR}


def test_answers_that_a_scorer_cannot_read_are_wrong(pool: VerifierPool) -> None:
    prompt = problem("prime_factorization")
    assert ReasoningGym()(prompt, "#### three") == Verdict(0.0, Outcome.WRONG, "three")
    assert ReasoningGym()(prompt, f"#### {prompt.gold}").outcome is Outcome.RIGHT


def test_any_answer_has_an_outcome(pool: VerifierPool) -> None:
    hostile = ["\ud800", "\0", "9" * 900, "9**9**9**9", "(" * 500, "x" * 100_000, "{" + "}", "½"]
    rows = [(problem(name), f"#### {answer}") for name in NAMES for answer in hostile]
    bad = {Outcome.WRONG, Outcome.TIMEOUT, Outcome.SCORER_ERROR}
    assert {v.outcome for v in pool.verify(rows)} <= bad

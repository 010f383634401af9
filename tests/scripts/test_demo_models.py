import random
import re
from pathlib import Path

import pytest

from hacrl.paths import resolve
from scripts.demo_models.problems import (
    Problem,
    demo_problems,
    draw_problem,
    stays_in_range,
    write_problems,
)
from scripts.demo_models.solutions import (
    FLAWLESS,
    ErrorRates,
    final_answer,
    is_well_formed,
    write_solution,
)
from scripts.demo_models.tokenization import (
    build_bpe_tokenizer,
    build_char_tokenizer,
    check_lossless,
)
from scripts.demo_models.training import Training, draw_batches

MIXED = Problem(12, (7, -5))


@pytest.mark.parametrize(
    ("problem", "question", "answer", "kind", "solution"),
    [
        (MIXED, "12+7-5=", "14", "mixed", "12+7=19;19-5=14;####14"),
        (Problem(1, (20,)), "1+20=", "21", "addition", "1+20=21;####21"),
        (Problem(9, (-4, -5)), "9-4-5=", "0", "subtraction", "9-4=5;5-5=0;####0"),
    ],
)
def test_a_problem_and_its_flawless_solution(
    problem: Problem, question: str, answer: str, kind: str, solution: str
) -> None:
    assert (problem.question, problem.answer, problem.kind) == (question, answer, kind)
    assert write_solution(problem, FLAWLESS, random.Random(0)) == solution


@pytest.mark.parametrize(
    ("value", "terms", "inside"),
    [(0, (), True), (99, (), True), (-1, (), False), (95, (5, -5), False), (3, (-3, 99), True)],
)
def test_range(value: int, terms: tuple[int, ...], inside: bool) -> None:
    assert stays_in_range(value, terms) is inside


def test_bundled_problems_are_those_drawn_and_the_held_out_ones_are_others(tmp_path: Path) -> None:
    for name, problems in zip(("train", "heldout"), demo_problems(1), strict=True):
        write_problems(tmp_path / name, problems)
        bundled = resolve(f"bundled:demo/assets/{name}.jsonl")
        assert (tmp_path / name).read_bytes() == bundled.read_bytes()
    train, heldout = demo_problems(1)
    assert len(set(train) | set(heldout)) == len(train) + len(heldout)


def test_no_held_out_problem_is_trained_on() -> None:
    training = Training(ErrorRates(0.5, 0.5), flawless_steps=2, flawed_steps=2)

    def questions(heldout: frozenset[Problem]) -> set[str]:
        batches = list(draw_batches(training, heldout, random.Random(0)))
        assert [len(batch) for batch in batches] == [64] * 4
        return {question for batch in batches for question, _ in batch}

    rng = random.Random(1)
    heldout = frozenset(draw_problem(rng) for _ in range(5000))
    held_out = {problem.question for problem in heldout}
    assert questions(frozenset()) & held_out
    assert not questions(heldout) & held_out


def test_solutions_are_flawless_first_and_flawed_then() -> None:
    training = Training(ErrorRates(1.0, 1.0), flawless_steps=1, flawed_steps=1)
    right = [
        [final_answer(response) == str(eval(question[:-1])) for question, response in batch]
        for batch in draw_batches(training, frozenset(), random.Random(0))
    ]
    assert all(right[0])
    assert sum(right[1]) < 0.2 * len(right[1])


@pytest.mark.parametrize("rates", [ErrorRates(0.1, 0.5), ErrorRates(0.5, 0.1)])
def test_wrong_steps_have_their_share_and_stay_in_range(rates: ErrorRates) -> None:
    rng = random.Random(0)
    wrong: dict[str, list[bool]] = {"+": [], "-": []}
    for _ in range(5000):
        problem = draw_problem(rng)
        solution = write_solution(problem, rates, rng)
        assert is_well_formed(problem, solution)
        for left, sign, term, result in re.findall(r"(\d+)([+-])(\d+)=(-?\d+);", solution):
            assert 0 <= int(result) <= 99
            wrong[sign].append(int(result) != eval(f"{left}{sign}{term}"))
    assert sum(wrong["+"]) / len(wrong["+"]) == pytest.approx(rates.addition, abs=0.03)
    assert sum(wrong["-"]) / len(wrong["-"]) == pytest.approx(rates.subtraction, abs=0.03)


@pytest.mark.parametrize(
    ("response", "well_formed"),
    [
        ("12+7=19;19-5=14;####14", True),
        ("12+7=18;18-5=13;####13", True),
        ("12+7=18;19-5=14;####14", False),  # goes on from another value
        ("12+7=19;19-5=14;####15", False),  # answers other than it has worked out
        ("12+7=19;19-4=15;####15", False),  # another problem
        ("12+7=19;####19", False),
        ("12+7=19;19-5=14;", False),
        ("####14", False),
    ],
)
def test_well_formed(response: str, well_formed: bool) -> None:
    assert is_well_formed(MIXED, response) is well_formed


@pytest.mark.parametrize(
    ("response", "answer"), [("1####2#### 3\n", "3"), ("####", ""), ("3", None)]
)
def test_final_answer(response: str, answer: str | None) -> None:
    assert final_answer(response) == answer


def test_tokenizers_are_lossless_and_cut_differently() -> None:
    text = "12+7=19;####19"
    characters, numbers = build_char_tokenizer(), build_bpe_tokenizer([text] * 10)
    for tokenizer in (characters, numbers):
        check_lossless(tokenizer, random.Random(0))
    assert characters.tokenize(text) == list(text)
    assert numbers.tokenize(text) == ["12", "+", "7", "=", "19", ";", "####", "19"]

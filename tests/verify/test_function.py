import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hacrl.errors import UserError
from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify import Function, VerifierPool
from hacrl.verify.function import resolve

PROMPT = Prompt("t/0", "t", "?", "gold", metadata={"level": 3})


@pytest.mark.parametrize("name", ["user_rewards:exact", "user_rewards:slowly"])
def test_right_and_wrong(name: str) -> None:
    assert Function(name)(PROMPT, "gold") == Verdict(1.0, Outcome.RIGHT)
    assert Function(name)(PROMPT, "lead") == Verdict(0.0, Outcome.WRONG)


def test_bools_earn_what_the_recipe_says_and_numbers_themselves() -> None:
    assert Function("user_rewards:exact", correct=2.0)(PROMPT, "gold").reward == 2.0
    assert Function("user_rewards:exact", wrong=-1.0)(PROMPT, "lead").reward == -1.0
    assert Function("user_rewards:length")(PROMPT, "four") == Verdict(0.4, Outcome.WRONG)
    lenient = Function("user_rewards:length", threshold=0.4)
    assert lenient(PROMPT, "four") == Verdict(0.4, Outcome.RIGHT)


@pytest.mark.parametrize(
    ("response", "verdict"),
    [
        ("none", Verdict(None, Outcome.NOT_VERIFIABLE)),
        ("numpy", Verdict(0.5, Outcome.WRONG)),
        ("numpy bool", Verdict(1.0, Outcome.RIGHT)),
        ("int", Verdict(1.0, Outcome.RIGHT)),
        ("verdict", Verdict(0.25, Outcome.NO_ANSWER, "x")),
    ],
)
def test_results_of_many_kinds(response: str, verdict: Verdict) -> None:
    assert Function("user_rewards:anything")(PROMPT, response) == verdict


@pytest.mark.parametrize("response", ["text", "nan", "low", "low verdict", "no such key"])
def test_results_that_mean_nothing(response: str) -> None:
    with pytest.raises((TypeError, ValueError, KeyError)):
        Function("user_rewards:anything")(PROMPT, response)


def test_low_rewards_where_they_were_announced() -> None:
    verifier = Function("user_rewards:anything", lowest=-1.0)
    assert verifier(PROMPT, "low") == verifier(PROMPT, "low verdict") == Verdict(-1, Outcome.WRONG)


@pytest.fixture(scope="module")
def pool() -> Iterator[VerifierPool]:
    verifiers = {
        "t": Function("user_rewards:together", size=4, threshold=0.5),
        "twenty": Function("user_rewards:twenty_at_once", size=20),
        "one": Function("user_rewards:exact"),
    }
    with VerifierPool(verifiers, seconds=2.0) as pool:
        yield pool


def verdicts(pool: VerifierPool, task: str, *responses: str) -> list[Verdict]:
    return pool.verify([(Prompt(f"{task}/0", task, "?", "gold"), text) for text in responses])


def test_batches_are_as_long_as_the_recipe_allows(pool: VerifierPool) -> None:
    assert [v.reward for v in verdicts(pool, "t", *"abcdef")] == [4.0] * 4 + [2.0] * 2
    assert [v.reward for v in verdicts(pool, "t", "a")] == [1.0]


@pytest.mark.parametrize(
    ("bad", "outcome"),
    [
        ("raise", Outcome.SCORER_ERROR),
        ("die", Outcome.SCORER_ERROR),
        ("short", Outcome.SCORER_ERROR),
        ("sleep", Outcome.TIMEOUT),
    ],
)
def test_one_bad_response_of_a_batch_fails_alone(
    pool: VerifierPool, bad: str, outcome: Outcome
) -> None:
    found = [v.outcome for v in verdicts(pool, "t", "a", bad, "b", "c")]
    assert found == [Outcome.RIGHT, outcome, Outcome.RIGHT, Outcome.RIGHT]


def test_an_async_batch_waits_for_all_at_once(pool: VerifierPool) -> None:
    found = verdicts(pool, "twenty", *(f"{i}" for i in range(19)), "gold")
    assert [v.outcome for v in found] == [Outcome.WRONG] * 19 + [Outcome.RIGHT]


def test_single_calls(pool: VerifierPool) -> None:
    outcomes = [v.outcome for v in verdicts(pool, "one", "gold", "lead")]
    assert outcomes == [Outcome.RIGHT, Outcome.WRONG]


def test_functions_may_be_in_the_current_folder_and_in_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rewards_of_mine.py").write_text("def f(prompt, response): return True\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert Function("rewards_of_mine:f")(PROMPT, "") == Verdict(1.0, Outcome.RIGHT)
    assert Function("user_rewards:Judge.call")(PROMPT, "") == Verdict(1.0, Outcome.RIGHT)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("user_rewardz:exact", "module user_rewardz cannot be imported (ModuleNotFoundError"),
        ("user_rewards:exakt", "module user_rewards has no exakt"),
        ("user_rewards:not_a_function", "user_rewards:not_a_function is not a function"),
    ],
)
def test_a_misspelt_function_is_found_early(name: str, part: str) -> None:
    with pytest.raises(UserError) as caught:
        resolve(name)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)

import pytest
from verifier_stubs import Hostile

from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify import Choice, Exact, Function, Math, Total, VerifierPool

PROMPT = Prompt("t/0", "t", "?", "1/3")
BOTH = Total((Math(), Exact(wrong=-0.5)), (1.0, 0.5))


@pytest.mark.parametrize(
    ("response", "verdict"),
    [
        ("#### 1/3", Verdict(1.5, Outcome.RIGHT, "1/3")),
        (r"#### \frac13", Verdict(0.75, Outcome.RIGHT, r"\frac13")),
        ("#### 1/4", Verdict(-0.25, Outcome.WRONG, "1/4")),
        ("none", Verdict(-0.25, Outcome.NO_ANSWER)),
    ],
)
def test_rewards_add_up_and_the_first_part_says_what_is_right(
    response: str, verdict: Verdict
) -> None:
    assert BOTH(PROMPT, response) == verdict
    with VerifierPool({"t": BOTH}) as pool:
        assert pool.verify([(PROMPT, response)] * 2) == [verdict] * 2


def test_bounds() -> None:
    assert (BOTH.correct, BOTH.wrong) == (1.5, -0.25)
    assert not BOTH.slow
    assert Total((Exact(), Function("user_rewards:exact")), (1.0, 1.0)).slow


def test_an_unscored_part_leaves_the_whole_unscored() -> None:
    total = Total((Exact(), Choice()), (1.0, 0.0))
    assert total(Prompt("t/0", "t", "?", "no letter"), "#### no letter") == Verdict(
        None, Outcome.NOT_VERIFIABLE
    )


@pytest.mark.parametrize(
    ("response", "verdict"),
    [
        ("gold", Verdict(4.0, Outcome.RIGHT, "gold")),
        ("raise", Verdict(None, Outcome.SCORER_ERROR)),
        ("sleep", Verdict(-1.0, Outcome.TIMEOUT)),
    ],
)
def test_failures_of_a_part_are_failures_of_the_whole(response: str, verdict: Verdict) -> None:
    total = Total((Hostile(wrong=-1.0), Exact(marker=None, correct=3.0)), (1.0, 1.0))
    prompt = Prompt("t/0", "t", "?", "gold")
    with VerifierPool({"t": total}, seconds=1.0) as pool:
        (found,) = pool.verify([(prompt, response)])
    assert found == verdict


def test_inline_parts_need_no_worker() -> None:
    total = Total((Exact(), Choice()), (1.0, 1.0))
    prompt = Prompt("t/0", "t", "?", "B")
    assert total.screen(prompt, "#### B") == Verdict(2.0, Outcome.RIGHT, "B")

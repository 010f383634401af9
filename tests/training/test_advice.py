"""Each thing is said once per agent, and only where it is so."""

from __future__ import annotations

from typing import Any

from hacrl.training.advice import Advisor


def row(**changes: Any) -> dict[str, Any]:
    return {
        "agent": "kim",
        "scored": 64,
        "unscored": 0,
        "outcomes": {"right": 30, "wrong": 34},
        "truncated": 0.0,
        "groups": 8,
        "groups_without_signal": 3,
        "sources": {"lee": {"inside": 0.5, "ratio_mean": 0.9}},
        "skipped_updates": 0,
        "reduced_micro_batch_tokens": None,
    } | changes


def test_a_healthy_step_needs_no_advice() -> None:
    assert Advisor().advise([row(), row(agent="lee")]) == []


def test_each_thing_is_said_once_per_agent() -> None:
    advisor = Advisor()
    bad = {"outcomes": {"no_answer": 40, "wrong": 24}}
    assert len(advisor.advise([row(**bad), row(agent="lee", **bad)])) == 2
    assert advisor.advise([row(**bad), row(agent="lee", **bad)]) == []


def test_what_is_worth_saying() -> None:
    def said(**changes: Any) -> str:
        (text,) = Advisor().advise([row(**changes)])
        return text

    unscored = said(scored=60, unscored=4, outcomes={"right": 60, "scorer_error": 4})
    assert "4 of 64 responses could not be scored" in unscored
    assert "scorer_error 4" in unscored
    assert "40 of 64 responses contain no answer" in said(outcomes={"no_answer": 40, "wrong": 24})
    assert "40% of responses hit sampling.max_new_tokens" in said(truncated=0.4)
    assert "95% of lee's rows are clipped" in said(
        sources={"lee": {"inside": 0.05, "ratio_mean": 0.6}}
    )
    assert "2 updates skipped" in said(skipped_updates=2)
    assert "at most 512 tokens" in said(reduced_micro_batch_tokens=512)


def test_a_difference_in_form_is_named_as_what_it_does_to_the_ratio() -> None:
    bad = {"outcomes": {"no_answer": 40, "wrong": 24}}
    (apart,) = Advisor().advise([row(**bad), row(agent="lee")])
    assert "kim: 40 of 64 responses contain no answer in the expected form, of lee 0 of 64" in apart
    assert "ω takes this difference in form for one in capability" in apart
    both = Advisor().advise([row(**bad), row(agent="lee", **bad)])
    assert len(both) == 2
    assert "ω" not in "".join(both)
    (alone,) = Advisor().advise([row(**bad)])
    assert "its reward measures the form" in alone
    some = {"outcomes": {"no_answer": 15, "wrong": 49}}
    assert Advisor().advise([row(**some), row(agent="lee")]) == []


def test_steps_without_signal_are_mentioned_after_three_in_a_row() -> None:
    advisor = Advisor()
    silent = {"groups_without_signal": 8, "sources": {}}
    assert advisor.advise([row(**silent)]) == []
    assert advisor.advise([row()]) == []
    assert [len(advisor.advise([row(**silent)])) for _ in range(4)] == [0, 0, 1, 0]


def test_what_does_not_learn_gets_advice_on_its_responses_alone() -> None:
    learning = {"groups", "groups_without_signal", "sources", "skipped_updates"}
    old = {key: value for key, value in row(agent="old").items() if key not in learning}
    assert Advisor().advise([old | {"truncated": 0.4}]) == [
        "old: 40% of responses hit the limit of tokens"
    ]
    nothing = {"scored": 0, "outcomes": {}, "truncated": None}
    bad = {"outcomes": {"no_answer": 40, "wrong": 24}}
    texts = Advisor().advise([old | nothing, row(**bad), row(agent="lee", **bad)])
    assert [text[:5] for text in texts] == ["kim: ", "lee: "]
    assert "of old" not in "".join(texts)

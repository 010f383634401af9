"""How the check explains differences; the check itself needs lm-eval (`make lm-eval-check`)."""

from __future__ import annotations

from typing import Any

import pytest

from hacrl.evaluation.answers import Answer
from scripts.lm_eval_check.comparing import report


def ours(response: str, read: str | None, outcome: str) -> Answer:
    reward = float(outcome == "right")
    return Answer("p/0", 0, "q", "#### 3", response, 5, True, False, reward, outcome, read)


def theirs(response: str, read: str, right: float) -> dict[str, Any]:
    return {"resps": [[response]], "filtered_resps": [read], "exact_match": right}


@pytest.mark.parametrize(
    ("answer", "sample", "shown", "code"),
    [
        (ours("#### 3", "3", "right"), theirs("#### 3", "3", 1.0), "is the same", 0),
        (
            ours("#### 3\n\nQuestion: more", "3", "right"),
            theirs("#### 3\n\n", "3", 1.0),
            "is the same",
            0,
        ),
        (ours("#### 3", "3", "right"), theirs("#### 4", "4", 0.0), "NO EXPLANATION", 1),
        (ours("#### 3", "3", "wrong"), theirs("#### 3", "3", 1.0), "NO EXPLANATION", 1),
        (
            ours("#### 4 #### 3", "3", "right"),
            theirs("#### 4 #### 3", "4", 0.0),
            "takes the first answer",
            0,
        ),
        (ours(r"\boxed{3}", "3", "right"), theirs(r"\boxed{3}", "[invalid]", 0.0), "here a box", 0),
    ],
)
def test_a_difference_is_explained_or_counts(
    capsys: pytest.CaptureFixture[str],
    answer: Answer,
    sample: dict[str, Any],
    shown: str,
    code: int,
) -> None:
    assert report([answer], {0: sample}) == code
    assert shown in capsys.readouterr().out

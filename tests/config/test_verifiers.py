"""What a recipe may say about verifiers, and what it is told when it is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from hacrl.config import Recipe, recipe_from_dict, recipe_to_yaml
from hacrl.config.text import parse_yaml
from hacrl.errors import UserError

PYTHON = {"type": "python", "function": "rewards:score"}
COMMAND = {"type": "command", "argv": ["./check"]}


def made(verifier: dict[str, Any], task: str = "sums", **changes: Any) -> Recipe:
    return recipe_from_dict(
        {
            "name": "trial",
            "steps": 2,
            "prompts_per_step": 4,
            "agents": {"kim": {"model": "some/kim"}},
            "tasks": {task: {"source": {"type": "jsonl", "path": "x.jsonl"}, "verifier": verifier}},
        }
        | changes
    )


def refused(verifier: dict[str, Any], task: str = "sums", **changes: Any) -> str:
    with pytest.raises(UserError) as caught:
        made(verifier, task, **changes)
    assert len(str(caught.value).splitlines()) <= 2
    return str(caught.value)


def parts(*verifiers: dict[str, Any], weight: float = 1.0) -> dict[str, Any]:
    found = [{"verifier": verifier, "weight": weight} for verifier in verifiers]
    return {"type": "sum", "parts": found}


ALL = [
    *({"type": name} for name in ("math", "exact", "choice", "code", "reasoning_gym")),
    PYTHON,
    COMMAND,
    parts({"type": "math"}, PYTHON, weight=0.5),
]


@pytest.mark.parametrize("verifier", ALL)
def test_a_resolved_recipe_reads_back_the_same(verifier: dict[str, Any]) -> None:
    recipe = made(verifier)
    again = recipe_from_dict(parse_yaml(recipe_to_yaml(recipe), "recipe"))
    assert again == recipe
    assert recipe.tasks["sums"].verifier.lowest_reward == 0.0


@pytest.mark.parametrize(
    ("verifier", "lowest", "key"),
    [
        ({"type": "choice", "wrong": -1}, -1.0, ".wrong: "),
        ({"type": "reasoning_gym", "wrong": -1, "partial": True}, -1.0, ".wrong: "),
        (PYTHON | {"lowest": -2}, -2.0, ".lowest: "),
        (PYTHON | {"wrong": -2}, -2.0, ".wrong: "),
        (COMMAND | {"lowest": -2, "judged_by": "score"}, -2.0, ".lowest: "),
        (parts({"type": "math"}, PYTHON | {"lowest": -2}, weight=0.5), -1.0, ": "),
    ],
)
def test_every_type_knows_its_lowest_reward(
    verifier: dict[str, Any], lowest: float, key: str
) -> None:
    allowed = made(verifier, capability={"metric": "positive_rate"})
    assert allowed.tasks["sums"].verifier.lowest_reward == lowest
    message = refused(verifier)
    assert f"tasks.sums.verifier{key}capability.metric mean_reward needs rewards ≥ 0" in message
    assert f"this one can be {lowest:g}" in message


def test_a_lowest_score_means_nothing_where_exit_codes_judge() -> None:
    made(COMMAND | {"lowest": -2})


@pytest.mark.parametrize(
    "verifier", [{"type": "code", "seconds": 10}, parts(COMMAND | {"seconds": 10})]
)
def test_a_program_must_end_before_its_worker_is_killed(verifier: dict[str, Any]) -> None:
    assert "less than verification.seconds, which is 10" in refused(verifier)
    made(verifier, verification={"seconds": 11})


@pytest.mark.parametrize(
    ("verifier", "message"),
    [
        ({"type": "choise"}, "tasks.sums.verifier: "),
        ({"type": "choice", "optoins": "AB"}, "unknown key tasks.sums.verifier.optoins; did you"),
        ({"type": "choice", "options": "A"}, "tasks.sums.verifier.options: "),
        ({"type": "choice", "options": "ABA"}, "tasks.sums.verifier.options: names a letter"),
        ({"type": "code", "marker": "x"}, "unknown key tasks.sums.verifier.marker; "),
        ({"type": "reasoning_gym", "threshold": 0}, "tasks.sums.verifier.threshold: "),
        ({"type": "command"}, "missing key tasks.sums.verifier.argv"),
        ({"type": "command", "argv": []}, "tasks.sums.verifier.argv: "),
        ({"type": "command", "argv": "./check"}, "tasks.sums.verifier.argv: "),
        ({"type": "python"}, "missing key tasks.sums.verifier.function"),
        ({"type": "python", "function": "rewards"}, "function: write it as module:function"),
        (PYTHON | {"batch": 0}, "tasks.sums.verifier.batch: "),
        (parts(), "tasks.sums.verifier.parts: "),
        (parts(PYTHON, weight=-1), "tasks.sums.verifier.parts.0.weight: "),
        (parts(parts(PYTHON)), "tasks.sums.verifier.parts.0.verifier: "),
        (
            parts({"type": "math"}, {"type": "math", "last_numbr": True}),
            "unknown key tasks.sums.verifier.parts.1.verifier.last_numbr; did you mean "
            "last_number?",
        ),
    ],
)
def test_mistakes_are_named_by_their_key(verifier: dict[str, Any], message: str) -> None:
    assert message in refused(verifier)


@pytest.mark.parametrize("task", ["math", "jsonl", "verifier", "source", "exact", "sum"])
def test_a_task_may_be_called_like_a_type_or_a_key(task: str) -> None:
    message = refused({"type": "exact", "marcer": "x"}, task)
    assert f"unknown key tasks.{task}.verifier.marcer; did you mean marker?" in message

import sys
from typing import Any

import pytest

from hacrl.config.rollouts import Verification
from hacrl.config.tasks import Task
from hacrl.errors import UserError
from hacrl.verify import (
    Choice,
    Code,
    Command,
    Exact,
    Function,
    Math,
    ReasoningGym,
    Total,
    Verifier,
    make_pool,
    make_verifiers,
)


def tasks(**verifier: Any) -> dict[str, Task]:
    source = {"type": "jsonl", "path": "x.jsonl"}
    return {"sums": Task.model_validate({"source": source, "verifier": verifier})}


@pytest.mark.parametrize(
    ("spec", "verifier"),
    [
        (
            {"type": "math", "marker": "=>", "last_number": True, "correct": 2, "wrong": -1},
            Math("=>", True, 2.0, -1.0),
        ),
        ({"type": "exact", "marker": None, "correct": 2}, Exact(None, 2.0, 0.0)),
        ({"type": "choice", "options": "ABC", "wrong": -1}, Choice("####", "ABC", 1.0, -1.0)),
        ({"type": "code", "seconds": 2, "memory": 0.5}, Code(2.0, 2**29)),
        (
            {"type": "reasoning_gym", "name": "countdown", "threshold": 0.5, "partial": True},
            ReasoningGym("countdown", "####", 0.5, True),
        ),
        (
            {
                "type": "command",
                "argv": [sys.executable, "x"],
                "judged_by": "score",
                "lowest": -1,
                "threshold": 0.5,
                "environment": ["ELAN_HOME"],
            },
            Command((sys.executable, "x"), "score", 0.5, -1.0, 5.0, 2**31, ("ELAN_HOME",)),
        ),
        (
            {"type": "python", "function": "user_rewards:together", "batch": 8, "threshold": 0.5},
            Function("user_rewards:together", 8, 0.5),
        ),
        (
            {
                "type": "sum",
                "parts": [
                    {"verifier": {"type": "math"}},
                    {"verifier": {"type": "exact"}, "weight": 0.5},
                ],
            },
            Total((Math(), Exact()), (1.0, 0.5)),
        ),
    ],
)
def test_a_recipe_makes_the_verifier(spec: dict[str, Any], verifier: Verifier) -> None:
    assert make_verifiers(tasks(**spec)) == {"sums": verifier}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"type": "python", "function": "user_rewardz:f"},
            "tasks.sums.verifier.function: module user_rewardz cannot be imported",
        ),
        (
            {"type": "python", "function": "user_rewards:f"},
            "tasks.sums.verifier.function: module user_rewards has no f",
        ),
        (
            {"type": "command", "argv": ["no-such-program"]},
            "tasks.sums.verifier.argv: program no-such-program is not found",
        ),
        (
            {"type": "reasoning_gym", "name": "chian_sum"},
            "tasks.sums.verifier.name: reasoning-gym has no generator 'chian_sum'; did you mean "
            "chain_sum",
        ),
        (
            {
                "type": "sum",
                "parts": [
                    {"verifier": {"type": "math"}},
                    {"verifier": {"type": "command", "argv": ["no-such-program"]}},
                ],
            },
            "tasks.sums.verifier.parts.1.verifier.argv: program no-such-program is not found",
        ),
    ],
)
def test_what_is_not_there_is_found_before_the_run(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        make_verifiers(tasks(**spec))
    assert str(caught.value).startswith(message)
    assert len(str(caught.value).splitlines()) <= 2


def test_the_pool_takes_the_limits_of_the_recipe() -> None:
    rule = Verification(workers=3, seconds=4.0, memory=0.5, max_chars=10, max_errors=0.25)
    pool = make_pool(tasks(type="math"), rule)
    assert (pool.workers, pool.seconds, pool.memory) == (3, 4.0, 2**29)
    assert (pool.max_chars, pool.max_errors) == (10, 0.25)
    assert pool.verifiers == {"sums": Math()}

from __future__ import annotations

from typing import Any

import pytest

from hacrl.config import Recipe, recipe_from_dict
from hacrl.errors import UserError

TASK: dict[str, Any] = {
    "source": {"type": "jsonl", "path": "x.jsonl"},
    "verifier": {"type": "exact"},
}

RAW: dict[str, Any] = {
    "name": "trial",
    "steps": 2,
    "prompts_per_step": 4,
    "agents": {name: {"model": f"some/{name}"} for name in ("kim", "lee", "max")},
    "tasks": {"sums": TASK},
}


def made(**changes: Any) -> Recipe:
    return recipe_from_dict(RAW | changes)


def refused(**changes: Any) -> str:
    with pytest.raises(UserError) as caught:
        made(**changes)
    assert len(str(caught.value).splitlines()) <= 2
    return str(caught.value)


def with_verifier(**changes: Any) -> dict[str, Any]:
    return {"sums": TASK | {"verifier": {"type": "exact"} | changes}}


@pytest.mark.parametrize(
    ("sharing", "sources"),
    [
        ("everyone", {"kim": ("lee", "max"), "lee": ("kim", "max"), "max": ("kim", "lee")}),
        ("nobody", {"kim": (), "lee": (), "max": ()}),
        ({"lee": ["max", "kim"]}, {"kim": (), "lee": ("kim", "max"), "max": ()}),
    ],
)
def test_who_learns_from_whom(sharing: object, sources: dict[str, tuple[str, ...]]) -> None:
    recipe = made(sharing=sharing)
    assert {name: recipe.sources(name) for name in recipe.agents} == sources


def test_updates_grow_with_the_sources() -> None:
    recipe = made(sharing={"lee": ["kim", "max"]}, update={"mini_batches": 2})
    assert [recipe.updates_per_step(name) for name in recipe.agents] == [2, 6, 2]


def test_the_multiplier_keeps_the_size_of_an_update() -> None:
    one = made(method="gspo", update={"mini_batches": 2})
    two = made(method="gspo_x2", update={"mini_batches": 2})
    assert (two.group_size, two.mini_batches) == (2 * one.group_size, 2 * one.mini_batches)


@pytest.mark.parametrize(
    ("sharing", "part"),
    [
        ({"lee": ["tom"]}, "sharing: tom is not an agent; the agents are kim, lee, max"),
        ({"tom": ["lee"]}, "sharing: tom is not an agent"),
        ({"lee": ["lee"]}, "sharing.lee: an agent always learns from itself"),
        ("somebody", "sharing: "),
        ({"lee": "kim"}, "sharing.lee: "),
    ],
)
def test_a_sharing_graph_must_make_sense(sharing: object, part: str) -> None:
    assert part in refused(sharing=sharing)


def test_a_single_response_needs_others_to_compare_with() -> None:
    message = refused(sharing={"lee": ["max"]}, sampling={"group_size": 1})
    assert "sampling.group_size: agent kim" in message
    made(sharing="everyone", sampling={"group_size": 1})


def test_negative_rewards_need_another_capability() -> None:
    assert "tasks.sums.verifier.wrong" in refused(tasks=with_verifier(wrong=-1))
    made(tasks=with_verifier(wrong=-1), capability={"metric": "positive_rate"})


def test_a_wrong_answer_is_not_worth_more_than_a_right_one() -> None:
    assert "tasks.sums.verifier" in refused(tasks=with_verifier(wrong=2))


def test_token_level_ratios_need_agents_on_their_own() -> None:
    assert "ratio.level" in refused(ratio={"level": "token"})
    made(ratio={"level": "token"}, sharing="nobody")


def test_mini_batches_need_responses() -> None:
    message = refused(update={"mini_batches": 9}, prompts_per_step=2, sampling={"group_size": 4})
    assert "update.mini_batches: 9" in message


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"steps": 0}, "steps"),
        ({"seed": -1}, "seed"),
        ({"agents": {}}, "agents"),
        ({"agents": {"a b": {"model": "x"}}}, "agents.a b"),
        ({"name": "../up"}, "name"),
        ({"optimizer": {"learning_rate": float("nan")}}, "optimizer.learning_rate"),
        ({"sampling": {"temperature": float("inf")}}, "sampling.temperature"),
        ({"ratio": {"alpha": 8}}, "ratio.alpha"),
        ({"clip": {"delta": 1.5}}, "clip.delta"),
        ({"tasks": {"sums": TASK | {"instruction": "Solve it."}}}, "tasks.sums.instruction"),
        ({"tasks": {"sums": TASK | {"source": {"type": "xml"}}}}, "tasks.sums.source"),
        ({"tasks": {"sums": TASK | {"source": {"path": "x"}}}}, "tasks.sums.source"),
    ],
)
def test_bounds_are_kept_and_the_key_is_named(changes: dict[str, Any], key: str) -> None:
    assert f"recipe: {key}: " in refused(**changes)


@pytest.mark.parametrize(
    ("instruction", "part"),
    [
        ("{{question}}", "write {question}"),
        ("Solve: {{ question }}", "write {question}"),
        ("{question} { question }", "write {question}"),
        ("{question}\nPut it into \boxed{}.", r"\b is one, so write two backslashes"),
        ("{question} \frac{1}{2}", r"\f is one"),
        ("{question} 2 \times 3", r"\t is one"),
        ("{question} \text{cm}", r"\t is one"),
        ("{question} \right)", r"\r is one"),
        ("{question} \vec{a}", r"\v is one"),
        ("{question} \neq 0", r"\n is one"),
        ("{question} \x1b[0m", r"\e is one"),
        ("{question} \x00", "character of code 0"),
    ],
)
def test_an_instruction_that_says_something_else_is_refused(instruction: str, part: str) -> None:
    message = refused(tasks={"sums": TASK | {"instruction": instruction}})
    assert "tasks.sums.instruction: " in message or "tasks.sums" in message
    assert part in message
    if "question" not in part:
        system = instruction.replace("{question}", "")
        assert part in refused(tasks={"sums": TASK | {"system": system}})


@pytest.mark.parametrize(
    "instruction",
    [
        r"{question} Put it into \boxed{}.",
        r"Simplify $\sqrt{{question}}$ and $x^{{question}}$.",
        "{question}\r\nThink.\n\nnew\tline\n{an example}",
        "{question} {{not a field}}",
    ],
)
def test_an_instruction_that_means_what_it_says_is_accepted(instruction: str) -> None:
    made(tasks={"sums": TASK | {"instruction": instruction}})


@pytest.mark.parametrize("marker", ["", " ", "\n"])
def test_an_empty_marker_is_refused(marker: str) -> None:
    assert "tasks.sums.verifier.marker: is empty" in refused(tasks=with_verifier(marker=marker))
    made(tasks=with_verifier(marker=None))

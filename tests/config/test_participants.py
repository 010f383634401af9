"""Agents of a recipe are models, most of which learn, or recordings."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hacrl.config import recipe_from_dict, recipe_to_yaml
from hacrl.config.changes import changes
from hacrl.errors import UserError

KIM = {"model": "a"}
OLD = {"from": "recording", "path": "runs/earlier"}
FROZEN = {"model": "b", "learns": False}
BASE: dict[str, Any] = {
    "name": "x",
    "steps": 1,
    "prompts_per_step": 2,
    "agents": {"kim": KIM},
    "tasks": {"t": {"source": {"type": "jsonl", "path": "p"}, "verifier": {"type": "math"}}},
}


def test_who_learns_and_from_whom() -> None:
    agents = {"kim": KIM, "old": OLD, "lee": KIM, "teacher": FROZEN}
    recipe = recipe_from_dict(BASE | {"agents": agents})
    assert list(recipe.models) == ["kim", "lee", "teacher"]
    assert list(recipe.learners) == ["kim", "lee"]
    assert list(recipe.recordings) == ["old"]
    assert recipe.sources("kim") == ("old", "lee", "teacher")
    assert recipe.sources("old") == recipe.sources("teacher") == ()
    assert recipe.updates_per_step("kim") == 4
    chosen = recipe_from_dict(BASE | {"agents": agents, "sharing": {"kim": ["teacher"]}})
    assert (chosen.sources("kim"), chosen.sources("lee")) == (("teacher",), ())


def test_a_resolved_recipe_reads_as_it_was_written() -> None:
    recipe = recipe_from_dict(BASE | {"agents": {"kim": KIM, "old": OLD, "teacher": FROZEN}})
    text = recipe_to_yaml(recipe)
    assert yaml.safe_load(text)["agents"]["old"] == {**OLD, "agent": None}
    assert recipe_from_dict(yaml.safe_load(text)) == recipe


@pytest.mark.parametrize(
    "override", ["agents.teacher.learns=true", "agents.old.path=runs/other", "agents.old.agent=lee"]
)
def test_who_learns_and_what_is_recorded_decide_what_is_learned(override: str) -> None:
    raw = BASE | {"agents": {"kim": KIM, "old": OLD, "teacher": FROZEN}}
    (change,) = changes(recipe_from_dict(raw), recipe_from_dict(raw, [override]))
    assert not change.harmless
    assert change.key == override.partition("=")[0]


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        ({"kim": FROZEN, "old": OLD}, "agents: none of them learns; at least one must"),
        (
            {"kim": KIM, "teacher": FROZEN | {"learning_rate": 1e-3}},
            "agents.teacher.learning_rate: is of no use where learns is false",
        ),
        (
            {"kim": KIM, "teacher": FROZEN | {"lora": {"rank": 4}}},
            "agents.teacher.lora: would train an adapter, but learns is false",
        ),
        ({"kim": KIM, "old": OLD | {"from": "tape"}}, "agents.old.from: .* got 'tape'"),
        ({"kim": KIM, "old": {"from": "recording"}}, "missing key agents.old.path"),
        (
            {"kim": KIM, "old": OLD | {"agnt": "kim"}},
            "unknown key agents.old.agnt; did you mean agent",
        ),
        ({"kim": KIM, "old": OLD | {"device": "cpu"}}, "the keys here are agent, from, path"),
        # Names of agents that are names of kinds as well.
        ({"kim": KIM, "recording": {"from": "recording"}}, "missing key agents.recording.path"),
        ({"model": {"modl": "a"}}, "unknown key agents.model.modl; did you mean model"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_key(agents: Any, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        recipe_from_dict(BASE | {"agents": agents})
    assert len(str(caught.value).splitlines()) == 1


def test_what_does_not_learn_has_no_sources() -> None:
    raw = BASE | {"agents": {"kim": KIM, "teacher": FROZEN}, "sharing": {"teacher": ["kim"]}}
    with pytest.raises(
        UserError, match=r"sharing.teacher: is an agent that does not learn; drop it"
    ):
        recipe_from_dict(raw)


def test_half_precision_holds_what_does_not_learn() -> None:
    half = FROZEN | {"dtype": "float16"}
    assert recipe_from_dict(BASE | {"agents": {"kim": KIM, "teacher": half}})
    assert recipe_from_dict(
        BASE | {"agents": {"kim": KIM, "teacher": FROZEN | {"lora": {"adapter": "folder"}}}}
    )

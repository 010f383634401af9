"""What the tables of a report say of a run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from hacrl.report.facts import run_facts, task_lines
from hacrl.report.reading import RunData


def run_of(recipe: dict[str, Any], rows: list[dict[str, Any]] | None = None) -> RunData:
    agents = tuple(recipe.get("agents", {}))
    return RunData(Path("x"), "x", "finished", {}, recipe, agents, tuple(rows or ()), (), ())


def test_the_place_of_every_task_is_shown() -> None:
    hub = {"type": "hub", "id": "openai/gsm8k", "config": "main", "split": "train"}
    parts = [{"verifier": {"type": "math"}}, {"verifier": {"type": "function"}}]
    recipe = {
        "tasks": {
            "gsm": {"source": hub, "verifier": {"type": "math"}},
            "sums": {
                "source": {"type": "reasoning_gym", "generators": {"a": {}, "b": {}}, "size": 9},
                "verifier": {"type": "sum", "parts": parts},
            },
        },
        "evaluation": {"tasks": {"held": {"source": hub | {"split": "test"}, "verifier": {}}}},
    }
    assert task_lines(run_of(recipe)) == [
        "gsm (trained on): hub openai/gsm8k (main, train), verifier math",
        "sums (trained on): reasoning_gym a, b (9 problems, seed 0), "
        "verifier sum of math, function",
        "held (held out): hub openai/gsm8k (main, test), verifier ",
    ]


def test_machines_are_named_once_if_they_are_alike() -> None:
    here = {"processor": "Ryzen 9", "instructions": "AVX2", "threads": "2"}
    run = dataclasses.replace(run_of({}), machines={"kim": here, "lee": here})
    assert dict(run_facts(run))["computed on"] == "Ryzen 9 (AVX2, 2 threads)"
    run = dataclasses.replace(run, machines={"kim": here, "lee": here | {"threads": "8"}})
    assert dict(run_facts(run))["computed on"] == (
        "kim: Ryzen 9 (AVX2, 2 threads); lee: Ryzen 9 (AVX2, 8 threads)"
    )


def test_steps_that_went_on_without_an_agent_are_counted() -> None:
    recipe = {"agents": {"kim": {}, "lee": {}}, "steps": 4}
    rows = [
        {"step": step, "agent": agent, "seconds": {"learn": 2.0}}
        for step in range(4)
        for agent in ("kim", "lee")
        if agent == "kim" or step in (0, 3)
    ]
    facts = dict(run_facts(run_of(recipe, rows)))
    assert facts["steps"] == "4 of 4"
    assert facts["steps without"] == "lee in 2"
    assert facts["time in steps"] == "8.0s"
    whole = dict(run_facts(run_of(recipe, [row for row in rows if row["agent"] == "kim"][:0])))
    assert "steps without" not in whole

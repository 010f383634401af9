"""Evaluation in the course of training."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

from hacrl.cli.check import print_preparation
from hacrl.config import recipe_from_dict
from hacrl.console.observer import Silent
from hacrl.errors import UserError
from hacrl.evaluation.compare import compare
from hacrl.evaluation.held_out import answer_all, held_out_jobs
from hacrl.evaluation.store import stored_evaluations
from hacrl.fleet import LocalFleet
from hacrl.records import Decoding
from hacrl.runs.run import Run
from hacrl.tasks import load_prompts
from hacrl.training.preparing import prepare
from hacrl.training.train import train
from hacrl.verify import VerifierPool, make_verifiers

Make = Callable[..., dict[str, Any]]
WIDE = {"delta": 1.0, "delta_step": 0.0, "own_low": 0.3, "own_high": 0.3}


class Notes(Silent):
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.phases: list[tuple[str, int]] = []

    def note(self, text: str) -> None:
        self.texts.append(text)

    def phase(self, name: str, step: int) -> None:
        self.phases.append((name, step))


@pytest.fixture
def make(tiny_recipe: Make) -> Make:
    """A recipe of five steps whose held-out problems are those that it trains on."""

    def build(**evaluation: Any) -> dict[str, Any]:
        raw = tiny_recipe(steps=5, clip=WIDE)
        if evaluation:
            raw["evaluation"] = {"tasks": {"fresh": raw["tasks"]["bits"]}, **evaluation}
        return raw

    return build


def rows(run: Run, name: str = "evaluations.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run.path / name).read_text().splitlines()]


def test_a_run_trains_bit_for_bit_as_without_evaluation(make: Make, tmp_path: Path) -> None:
    without = train(recipe_from_dict(make()), tmp_path / "1")
    drawn = make(every=1, at_start=True, samples=3, greedy=False, temperature=0.7)
    evaluated = train(recipe_from_dict(drawn), tmp_path / "2")
    for agent in ("kim", "lee"):
        left, right = (
            load_file(run.agents[agent] / "model.safetensors") for run in (without, evaluated)
        )
        assert all(torch.equal(left[name], right[name]) for name in left)
    for file in sorted((without.path / "rollouts").iterdir()):
        assert pq.read_table(file).equals(pq.read_table(evaluated.path / "rollouts" / file.name))
    plain, with_it = (
        [{k: v for k, v in row.items() if k != "seconds"} for row in rows(run, "metrics.jsonl")]
        for run in (without, evaluated)
    )
    assert plain == with_it
    assert set(rows(evaluated, "metrics.jsonl")[1]["seconds"]) == {
        "sample",
        "verify",
        "save",
        "learn",
    }
    assert not (without.path / "evaluations.jsonl").exists()


@pytest.mark.parametrize(
    ("when", "steps"),
    [
        ({"every": 2, "at_start": True}, [0, 2, 4, 5]),
        ({"every": 5}, [5]),
        ({"samples": 1}, [5]),
    ],
)
def test_each_evaluation_is_on_disk_with_the_step_that_it_measured(
    make: Make, tmp_path: Path, when: dict[str, Any], steps: list[int]
) -> None:
    notes = Notes()
    run = train(recipe_from_dict(make(**when, limit=20)), tmp_path, notes)
    found = rows(run)
    assert [(row["step"], row["agent"]) for row in found] == [
        (step, agent) for step in steps for agent in ("kim", "lee")
    ]
    for row in found:
        assert (row["task"], row["problems"], row["metric"]) == ("fresh", 20, "avg@1")
        assert 0 <= row["low"] <= row["value"] <= row["high"] <= 1
        assert row["seconds"] > 0
    said = [text for text in notes.texts if text.startswith("after step")]
    assert len(said) == len(steps)
    assert said[-1].startswith("after step 5: fresh kim 0.")
    assert [step for name, step in notes.phases if name == "evaluate"] == [
        max(step - 1, 0) for step in steps
    ]
    last = list(stored_evaluations(run.path / "evaluations" / "step-000005"))
    assert [one.label for one in last] == ["kim", "lee"]
    for one, row in zip(last, found[-2:], strict=True):
        answers = one.answers()
        assert sum(answer.right for answer in answers) / len(answers) == row["value"]


def test_the_last_evaluation_measures_the_agents_that_are_saved(make: Make, tmp_path: Path) -> None:
    recipe = recipe_from_dict(make(every=2))
    run = train(recipe, tmp_path)
    agents = {
        name: spec.model_copy(update={"model": str(run.agents[name])})
        for name, spec in recipe.agents.items()
    }
    fleet = LocalFleet.from_recipe(recipe.model_copy(update={"agents": agents}))
    (job,) = held_out_jobs(recipe)
    with VerifierPool(make_verifiers({"fresh": job.task})) as verifiers:
        again = answer_all(
            fleet,
            job.prompts,
            verifiers,
            samples=1,
            occasion="any",
            decoding=Decoding(4, 256, greedy=True),
        )
    for row in rows(run)[-2:]:
        own = again[row["agent"]]
        assert sum(answer.right for answer in own) / len(own) == row["value"]


def test_two_runs_are_compared_by_their_last_evaluations(make: Make, tmp_path: Path) -> None:
    runs = [
        train(recipe_from_dict(make(every=3), [f"name={name}", f"seed={seed}"]), tmp_path)
        for seed, name in enumerate(("a", "b"))
    ]
    found = compare([str(run.path) for run in runs], tmp_path / "none")
    assert [(one.baseline, one.agent, one.problems) for one in found] == [
        ("a/kim", "b/kim", 28),
        ("a/lee", "b/lee", 28),
    ]
    for one, before, after in zip(found, rows(runs[0])[-2:], rows(runs[1])[-2:], strict=True):
        assert (one.before, one.after) == (before["value"], after["value"])


def test_held_out_problems_that_are_too_long_are_left_out_with_a_note(
    make: Make, tmp_path: Path
) -> None:
    notes = Notes()
    raw = make(max_new_tokens=122)  # of 128 positions; kim reads the longest problems as 8 tokens
    run = train(recipe_from_dict(raw, ["steps=1"]), tmp_path / "1", notes)
    (note,) = [text for text in notes.texts if "no room" in text]
    assert "evaluation.tasks.fresh: 16 of 28 problems" in note
    assert rows(run)[0]["problems"] == 12
    with pytest.raises(UserError, match=r"lower evaluation\.max_new_tokens"):
        train(recipe_from_dict(make(max_new_tokens=128)), tmp_path / "2")
    assert not (tmp_path / "2").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples": 4}, r"evaluation: samples: 4 greedy .* set greedy: false"),
        ({"evry": 2}, r"evaluation\.evry; did you mean every"),
        ({"tasks": {}}, r"evaluation\.tasks"),
        ({"every": 0}, r"evaluation\.every"),
    ],
)
def test_mistakes_are_refused(make: Make, changes: dict[str, Any], message: str) -> None:
    raw = make(every=1)
    raw["evaluation"] |= changes
    with pytest.raises(UserError, match=message):
        recipe_from_dict(raw)


def test_missing_held_out_data_are_found_before_anything_is_loaded(
    make: Make, tmp_path: Path
) -> None:
    raw = make(every=1)
    raw["agents"] = {"kim": {"model": "./nowhere"}}
    task = {"source": {"type": "jsonl", "path": "none.jsonl"}, "verifier": {"type": "exact"}}
    raw["evaluation"]["tasks"]["fresh"] = task
    with pytest.raises(UserError, match=r"^evaluation\.tasks\.fresh: none\.jsonl: there is no"):
        train(recipe_from_dict(raw), tmp_path)


def test_the_check_says_when_and_on_what(make: Make) -> None:
    text = io.StringIO()
    recipe = recipe_from_dict(make(every=2, at_start=True, limit=9))
    print_preparation(recipe, prepare(recipe), Console(file=text, width=100))
    assert "evaluation at the start, every 2 steps, after the last step: fresh (9 problems), " in (
        text.getvalue()
    )
    assert "1 response each, greedy, at most 4 new tokens" in text.getvalue()
    raw = make(every=2)
    raw["evaluation"]["tasks"]["fresh"] = {
        **raw["tasks"]["bits"],
        "verifier": {"type": "python", "function": "nowhere:judge"},
    }
    with pytest.raises(UserError, match=r"^evaluation\.tasks\.fresh\.verifier\.function"):
        prepare(recipe_from_dict(raw))


def test_evaluation_leaves_no_trace_in_what_is_sampled_next(tiny_recipe: Make) -> None:
    recipe = recipe_from_dict(tiny_recipe())
    fleet, prompts = LocalFleet.from_recipe(recipe), load_prompts(recipe.tasks)
    before = fleet.sample(prompts[:2], 4, occasion="step 0")
    state = torch.get_rng_state()
    with VerifierPool(make_verifiers(recipe.tasks)) as verifiers:
        first, again = (
            answer_all(fleet, prompts, verifiers, samples=4, occasion="held-out") for _ in range(2)
        )
    assert first == again
    assert {name: len(answers) for name, answers in first.items()} == {"kim": 112, "lee": 112}
    assert torch.equal(torch.get_rng_state(), state)
    assert fleet.sample(prompts[:2], 4, occasion="step 0") == before

"""Runs with sources that do not learn: a model as it is, and what an earlier run has recorded."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from hacrl.algorithm.advantages import CapabilityAware
from hacrl.algorithm.capability import CapabilityTracker
from hacrl.cli.check import print_preparation
from hacrl.config import recipe_from_dict
from hacrl.config.cautions import cautions
from hacrl.console.observer import Silent
from hacrl.console.progress import watch
from hacrl.errors import UserError
from hacrl.evaluation.targets import find_targets
from hacrl.records import Outcome, Pool, Prompt, Rollout, Verdict, Verified
from hacrl.report.facts import summary
from hacrl.report.page import make_report, render
from hacrl.report.reading import read_runs
from hacrl.runs.checkpoints import checkpoints
from hacrl.runs.export import export, find_source
from hacrl.runs.run import Run
from hacrl.training.loop import by_learner, joint_set
from hacrl.training.preparing import prepare
from hacrl.training.train import train
from scripts.crash_test.comparing import differences

MakeRecipe = Callable[..., dict[str, Any]]
Raw = dict[str, Any]
WIDE = {"clip": {"delta": 0.9, "own_low": 0.3, "own_high": 0.3}}
LEARNING = {"omega", "own", "sources", "loss", "groups", "updates", "guard_rate", "on_policy"}


class Notes(Silent):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


def metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def refusal(raw: Raw, root: Path, *overrides: str, **how: bool) -> str:
    with pytest.raises(UserError) as caught:
        train(recipe_from_dict(raw, overrides), root, **how)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


@pytest.fixture(scope="module")
def earlier(tiny_recipe: MakeRecipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two agents on half of the problems, with four responses to each."""
    raw = tiny_recipe(name="earlier", steps=4, sampling={"group_size": 4, "max_new_tokens": 4})
    raw["tasks"]["bits"]["source"]["limit"] = 14
    return train(recipe_from_dict(raw), tmp_path_factory.mktemp("earlier")).path


@pytest.fixture(scope="module")
def mixed(tiny_recipe: MakeRecipe, earlier: Path) -> Raw:
    """kim learns from lee, which stays as it is, and from what lee said earlier."""
    raw = tiny_recipe(**WIDE, steps=4, checkpoints={"every": 2})
    raw["agents"]["lee"]["learns"] = False
    raw["agents"]["old"] = {"from": "recording", "path": str(earlier), "agent": "lee"}
    raw["evaluation"] = {"tasks": {"held": raw["tasks"]["bits"]}, "every": 2, "limit": 5}
    return raw


@pytest.fixture(scope="module")
def straight(mixed: Raw, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Notes]:
    notes = Notes()
    return train(recipe_from_dict(mixed), tmp_path_factory.mktemp("straight"), notes), notes


# --- a run with both ----------------------------------------------------------------------------


def test_others_learn_from_what_does_not_learn(straight: tuple[Run, Notes]) -> None:
    rows = metrics(straight[0].path)
    assert [row["agent"] for row in rows] == ["kim", "lee", "old"] * 4
    for row in rows:
        if row["agent"] == "kim":
            assert row.keys() > LEARNING
            assert row["omega"].keys() == row["sources"].keys() == {"lee", "old"}
            assert "missing" not in row
        else:
            assert not row.keys() & LEARNING
            assert row["capability"] is not None
    for source in ("lee", "old"):
        assert any(row["sources"][source]["teaching"] for row in rows if row["agent"] == "kim")
    assert all(row["policy_version"] == 0 for row in rows if row["agent"] == "lee")
    lessons = pq.read_table(straight[0].path / "lessons").to_pylist()
    assert {row["learner"] for row in lessons} == {"kim"}
    assert {row["agent"] for row in lessons} == {"kim", "lee", "old"}


def test_a_recording_answers_the_prompts_that_it_has(
    straight: tuple[Run, Notes], earlier: Path
) -> None:
    run, notes = straight
    (note,) = (text for text in notes.texts if text.startswith("agent old"))
    assert "lee of" in note
    assert "has answered 14 of 28 prompts, 14 of them fewer than 8 times" in note
    recorded = pq.read_table(earlier / "rollouts").to_pylist()
    answered = {row["prompt_id"] for row in recorded if row["agent"] == "lee"}
    said = {(row["prompt_id"], row["text"]) for row in recorded if row["agent"] == "lee"}
    for step in range(4):
        rows = pq.read_table(run.path / "rollouts" / f"step-{step:06d}.parquet").to_pylist()
        ours = [row for row in rows if row["agent"] == "old"]
        assert {(row["prompt_id"], row["text"]) for row in ours} <= said
        prompts = {row["prompt"]: row["prompt_id"] for row in rows}
        expected = {p: 4 * (name in answered) for p, name in prompts.items()}
        assert {p: sum(row["prompt"] == p for row in ours) for p in prompts} == expected
        (told,) = (r for r in metrics(run.path) if (r["step"], r["agent"]) == (step, "old"))
        assert told["missing"] == 8 * 8 - len(ours) == 64 - told["scored"]


def test_only_learners_are_saved_evaluated_and_exported(
    straight: tuple[Run, Notes], mixed: Raw, tmp_path: Path
) -> None:
    run = straight[0].path
    assert [path.name for path in (run / "agents").iterdir()] == ["kim"]
    for checkpoint in checkpoints(run / "checkpoints"):
        assert [path.name for path in checkpoint.agents.iterdir()] == ["kim"]
    evaluated = (run / "evaluations.jsonl").read_text().splitlines()
    assert {json.loads(line)["agent"] for line in evaluated} == {"kim"}
    assert [target.agent for target in find_targets([str(run)])] == ["kim"]
    assert [t.agent for t in find_targets([str(run / "recipe.yaml")])] == ["kim", "lee"]
    for agent in ("lee", "old"):
        with pytest.raises(UserError, match=f"--agent {agent}: does not learn"):
            _export(run, agent, tmp_path / agent)
    _export(run, "kim", tmp_path / "kim")
    card = (tmp_path / "kim" / "README.md").read_text()
    assert "which did not learn" in card
    assert "old (recorded in the run earlier)" in card


def _export(run: Path, agent: str, to: Path) -> None:
    export(find_source(run, agent), to, merge=False, note=lambda text: None)


@pytest.mark.usefixtures("sketches")
def test_the_report_shows_them_as_sources(straight: tuple[Run, Notes]) -> None:
    (run,) = read_runs([straight[0].path])
    assert run.notes == ()
    assert (run.agents, run.learners) == (("kim", "lee", "old"), ("kim",))
    report = make_report([run], browse=4)
    agents = [row["agent"] for row in summary(report.groups)]
    assert agents == ["kim", "lee (does not learn)", "old (does not learn)"]
    panels = {chart.name: [p.title for p in chart.panels] for chart in report.charts}
    charts = {chart.name: [p.title for p in chart.panels] for chart in report.details[0].charts}
    assert panels["learning"] == ["kim", "lee, which does not learn", "old, which does not learn"]
    assert all(title.startswith("kim") for title in panels["cost"])
    assert charts["signal"] == ["kim"]
    assert charts["clipping"] == ["kim learns"]
    assert charts["outcomes"] == ["kim", "lee", "old"]
    assert "recording " in render(report)


def test_a_run_that_was_stopped_ends_bit_for_bit_the_same(
    mixed: Raw, straight: tuple[Run, Notes], tmp_path: Path
) -> None:
    train(recipe_from_dict(mixed, ["steps=2"]), tmp_path)
    again = train(recipe_from_dict(mixed), tmp_path, resume=True)
    asked_for_less = "checkpoints/step-000002/recipe.yaml"
    assert differences(again.path, straight[0].path) == [asked_for_less]


def test_taking_turns_on_a_device_changes_nothing(
    mixed: Raw, straight: tuple[Run, Notes], tmp_path: Path
) -> None:
    run = train(recipe_from_dict(mixed, ["fleet.in_turns=true"]), tmp_path)
    differ = differences(run.path, straight[0].path)
    assert {Path(name).name for name in differ} == {"recipe.yaml"}


def test_who_learns_and_what_was_recorded_matter_to_a_resumed_run(
    mixed: Raw, earlier: Path, tmp_path: Path
) -> None:
    train(recipe_from_dict(mixed, ["steps=2"]), tmp_path)
    onwards = {"resume": True}
    message = refusal(mixed, tmp_path, "agents.old.agent=kim", **onwards)
    assert "agents.old.agent was 'lee', is 'kim'" in message
    message = refusal(mixed, tmp_path, "agents.lee.learns=true", **onwards)
    assert "agents.lee.learns: it did not learn up to" in message
    copy = tmp_path / "copy"
    (copy / "rollouts").mkdir(parents=True)
    for path in (earlier / "rollouts").iterdir():
        (copy / "rollouts" / path.name).write_bytes(path.read_bytes())
    message = refusal(mixed, tmp_path, f"agents.old.path={copy}", **onwards)
    assert "agents.old.path was" in message
    run = tmp_path / "tiny"
    progress = json.loads((run / "checkpoints" / "step-000002" / "run.json").read_text())
    marked = [key for key in progress["files"] if key.startswith("agents.old.path: ")]
    assert len(marked) == 4
    assert any(key.startswith("agents.lee.model: model.safetensors") for key in progress["files"])


def test_turning_learning_off_matters_to_a_resumed_run(
    tiny_recipe: MakeRecipe, tmp_path: Path
) -> None:
    raw = tiny_recipe(steps=2, checkpoints={"every": 1})
    train(recipe_from_dict(raw, ["steps=1"]), tmp_path)
    message = refusal(raw, tmp_path, "agents.lee.learns=false", resume=True)
    assert "agents.lee.learns was True, is False" in message
    recipe = recipe_from_dict(raw, ["agents.lee.learns=false"])
    run = train(recipe, tmp_path, resume=True, accept_changes=True)
    assert [path.name for path in (run.path / "agents").iterdir()] == ["kim"]


def test_a_step_of_which_nothing_was_recorded(mixed: Raw, tmp_path: Path) -> None:
    raw = {key: value for key, value in mixed.items() if key != "evaluation"}
    console = Console(file=io.StringIO(), width=200)
    with watch(4, console) as observer:
        run = train(recipe_from_dict(raw, ["prompts_per_step=1", "seed=1"]), tmp_path, observer)
    rows = {(row["step"], row["agent"]): row for row in metrics(run.path)}
    empty = [step for step in range(4) if rows[step, "old"]["missing"] == 8]
    assert 0 < len(empty) < 4
    for step in range(4):
        old, kim = rows[step, "old"], rows[step, "kim"]
        assert kim["sources"]["old"]["rows"] == 8 - old["missing"]
        if step in empty:
            assert [old[k] for k in ("reward", "truncated", "length_mean", "length_max")] == [
                None
            ] * 4
            assert kim["sources"]["old"]["teaching"] is None
            assert kim["updates"] == 2
        else:
            assert kim["updates"] == 3
    assert "| old - |" in console.file.getvalue()  # type: ignore[attr-defined]


# --- check, and what is refused -----------------------------------------------------------------


def checked(raw: Raw, *overrides: str) -> str:
    console = Console(file=io.StringIO(), width=300)
    recipe = recipe_from_dict(raw, overrides)
    print_preparation(recipe, prepare(recipe), console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_check_counts_what_does_not_learn(mixed: Raw, earlier: Path) -> None:
    text = checked(mixed, "update.kl=0.1")
    agents, memory = text.split("memory", 1)
    lines = {line.split()[0]: line.split() for line in agents.splitlines() if line.strip()}
    assert lines["kim"][-4:] == ["itself,", "lee,", "old", "3"]
    assert lines["lee"][-2:] == ["-", "-"]
    assert lines["old"] == ["old", "recording", str(earlier), *["-"] * 5]
    assert "64 per step and agent, 128 per step in total" in text, "a recording draws nothing"
    held = {line.split()[0]: line.split() for line in memory.splitlines() if line.strip()}
    assert held["kim"].count("-") == 0
    assert held["lee"].count("-") == 3, "neither gradients nor AdamW nor reference"
    assert "old" not in held
    assert "note: agent old: lee of" in text
    assert "14 of 28 prompts" in text


def test_a_source_of_nobody_is_a_caution(mixed: Raw) -> None:
    assert cautions(recipe_from_dict(mixed)) == []
    found = cautions(recipe_from_dict(mixed, ["sharing={kim: [lee]}"]))
    assert found == [
        "agents.old: does not learn, and no agent learns from it; list it in sharing, or drop it"
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": "no/such"}, "agents.old.path: there is no run at no/such"),
        ({"path": "."}, "agents.old.path: . has no rollouts"),
        ({"agent": "tim"}, "agents.old.agent: .* has no rollouts of tim; it has those of kim, lee"),
        ({"agent": None}, "agents.old.agent: .* has rollouts of kim, lee; name one of them"),
    ],
)
def test_a_recording_that_cannot_serve_is_refused_before_a_model_is_loaded(
    mixed: Raw,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: Mapping[str, Any],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    old = mixed["agents"]["old"] | changes
    # No model of that name: to look for it would fail.
    agents = {"kim": {"model": "no/model/there"}, "old": old}
    raw = {key: value for key, value in mixed.items() if key != "evaluation"} | {"agents": agents}
    with pytest.raises(UserError, match=message):
        train(recipe_from_dict(raw), tmp_path / "runs")
    with pytest.raises(UserError, match=message):
        checked(raw)


def test_a_recording_without_any_of_the_prompts_is_refused(mixed: Raw, tmp_path: Path) -> None:
    raw = {**mixed, "tasks": {"others": mixed["tasks"]["bits"]}}
    assert "has no prompt in common with the tasks" in refusal(raw, tmp_path)


def test_a_run_is_no_recording_of_itself(mixed: Raw, earlier: Path) -> None:
    message = refusal(mixed, earlier.parent, "name=earlier", overwrite=True)
    assert "is the folder of this run itself" in message
    assert (earlier / "rollouts").is_dir()


# --- missing responses in the mathematics -------------------------------------------------------


def pool_of(rewards: Mapping[str, Sequence[Sequence[float | None]]], group_size: int) -> Pool:
    """A pool that lacks the responses whose reward is None."""
    prompts = tuple(Prompt(f"t/{p}", "t", "?", "1") for p in range(2))
    rows = [
        Verified(Rollout(p, agent, s, 0, "1", -1.0, 1, True), Verdict(reward, Outcome.RIGHT))
        for agent, groups in rewards.items()
        for p, group in enumerate(groups)
        for s, reward in enumerate(group)
        if reward is not None
    ]
    return Pool(0, tuple(rewards), prompts, group_size, tuple(rows))


def test_missing_responses_count_nowhere() -> None:
    """kim said 1 0 and 1 1; old said 1 to the first prompt, and nothing to the second."""
    pool = pool_of({"kim": [[1.0, 0.0], [1.0, 1.0]], "old": [[1.0, None], [None, None]]}, 2)
    capability = CapabilityTracker(pool.agents, 5, "mean_reward", 10.0)
    capability.observe(pool.rewards(), pool.agents)
    assert capability.estimates() == [0.75, 1.0]  # of 4, and of 1
    omega = capability.ratios()
    sharing = {"kim": ("old",)}
    joint = joint_set(pool, omega, sharing)
    assert joint.member_KJ.tolist() == [[True, True], [True, True]]
    judgement = CapabilityAware(epsilon=0.0)(joint)
    value = by_learner(judgement, pool.agents, sharing)
    assert value.keys() == {"kim"}
    # First prompt: rewards 1, 0, 1; σ² = (1/9 + 4/9 + 1/9) / 2 = 1/3.
    sigma = math.sqrt(1 / 3)
    kims = (1 + 0 + 0.75) / 3
    olds = (1 + 4 / 3 * (1 + 0)) / 3
    assert value["kim"]["kim"][0] == pytest.approx([(1 - kims) / sigma, -kims / sigma])
    assert value["kim"]["old"][0] == pytest.approx([4 / 3 * (1 - olds) / sigma, 0.0])
    # Second prompt: kim's rewards are all there are, and equal.
    assert value["kim"]["kim"][1] == [0.0, 0.0]
    assert value["kim"]["old"][1] == [0.0, 0.0]
    assert judgement.metrics["kim"]["groups_without_signal"] == 1


def test_a_source_of_which_nothing_is_there_has_no_capability() -> None:
    pool = pool_of({"kim": [[1.0, 0.0], [0.0, 0.0]], "old": [[None, None], [None, None]]}, 2)
    capability = CapabilityTracker(pool.agents, 5, "mean_reward", 10.0)
    capability.observe(pool.rewards(), pool.agents)
    assert capability.estimates() == [0.25, None]
    assert capability.ratios() == [[1.0, 1.0], [1.0, 1.0]]
    joint = joint_set(pool, capability.ratios(), {"kim": ("old",)})
    value = by_learner(CapabilityAware(epsilon=0.0)(joint), pool.agents, {"kim": ("old",)})
    assert value["kim"]["kim"][0] == pytest.approx([1 / math.sqrt(2), -1 / math.sqrt(2)])
    assert value["kim"]["old"] == [[0.0, 0.0], [0.0, 0.0]]


def test_a_source_that_does_not_learn_is_compared_with_those_who_learn_from_it() -> None:
    groups = [[1.0], [1.0]]
    pool = pool_of({"kim": groups, "lee": groups, "old": groups, "may": groups}, 1)
    joint = joint_set(pool, [[1.0] * 4] * 4, {"kim": ("lee", "old"), "lee": ()})
    assert joint.member_KJ.tolist() == [
        [True, True, True, False],
        [False, True, False, False],
        [True, False, True, False],
        [False, False, False, True],
    ]

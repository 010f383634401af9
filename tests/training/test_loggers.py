"""What loggers are given, and that none of them can stop a run. The three libraries are real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
import wandb
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hacrl.config import recipe_from_dict
from hacrl.errors import UserError
from hacrl.training import loggers
from hacrl.training.loggers import Loggers, check_loggers, flatten
from hacrl.training.preparing import prepare
from hacrl.training.train import Silent, train

MakeRecipe = Callable[..., dict[str, Any]]

ROWS = [
    {
        "step": 4,
        "agent": "kim",
        "reward": 0.5,
        "capability": None,
        "on_policy": True,
        "omega": {"lee": 1.25},
        "sources": {"lee": {"teaching": 0.5, "ratio_mean": None, "left_out": {"empty": 2}}},
    },
    {"step": 4, "agent": "lee", "reward": None, "updates": 2},
]
EVALUATIONS = [
    {"step": 5, "agent": "kim", "task": "sums", "value": 0.25, "metric": "avg@1"},
    {"step": 5, "agent": "lee", "task": "sums", "value": None, "problems": 0},
]
STEP = {
    "kim/reward": 0.5,
    "kim/on_policy": True,
    "kim/omega/lee": 1.25,
    "kim/sources/lee/teaching": 0.5,
    "kim/sources/lee/left_out/empty": 2,
    "lee/updates": 2,
}
EVALUATED = {"kim/evaluation/sums/value": 0.25, "lee/evaluation/sums/problems": 0}


class Notes(Silent):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


class Fake:
    """A logger that remembers, and fails from a given call on."""

    def __init__(self, fails_at: str | None = None, error: Exception | None = None) -> None:
        self.seen: list[tuple[Mapping[str, float], int]] = []
        self.calls: list[str] = []
        self._fails_at = fails_at
        self._error = error or ZeroDivisionError("no\n disk")

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name == self._fails_at:
            raise self._error

    def log(self, values: Mapping[str, float], step: int) -> None:
        self._call("log")
        self.seen.append((values, step))

    def finish(self) -> None:
        self._call("finish")


def write(recipe: Any, folder: Path, note: Callable[[str], None] = lambda text: None) -> None:
    with Loggers(recipe, folder, note) as all_of_them:
        all_of_them.step(ROWS)
        all_of_them.evaluations(EVALUATIONS)


def test_names_are_paths_and_gaps_and_texts_are_left_out() -> None:
    assert flatten({row["agent"]: {**row, "step": None} for row in ROWS}) == STEP
    assert flatten({"a": {"b": None, "c": "text", "d": [1]}}) == {}


def test_steps_count_what_is_complete(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = Fake()
    monkeypatch.setattr(loggers, "_open", lambda *_: fake)
    write(recipe_from_dict(tiny_recipe(loggers=["wandb"])), tmp_path)
    assert fake.seen == [(STEP, 5), (EVALUATED, 5)]
    assert fake.calls == ["log", "log", "finish"]


@pytest.mark.parametrize("moment", ["open", "log", "finish"])
def test_one_that_fails_is_switched_off_with_one_note_and_the_others_go_on(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    bad, good, notes = Fake(moment), Fake(), Notes()

    def opened(spec: Any, *_: object) -> Fake:
        if spec.type == "wandb" and moment == "open":
            raise ZeroDivisionError("no\n disk")
        return bad if spec.type == "wandb" else good

    monkeypatch.setattr(loggers, "_open", opened)
    write(recipe_from_dict(tiny_recipe(loggers=["wandb", "trackio"])), tmp_path, notes.note)
    assert notes.texts == ["loggers.0 (wandb) is switched off: ZeroDivisionError no disk"]
    assert bad.calls == {"open": [], "log": ["log"], "finish": ["log", "log", "finish"]}[moment]
    assert good.calls == ["log", "log", "finish"]


def test_an_interrupt_is_no_failure_of_a_logger(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> Fake:
        raise KeyboardInterrupt

    monkeypatch.setattr(loggers, "_open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(recipe_from_dict(tiny_recipe(loggers=["wandb"])), tmp_path)


def test_a_missing_package_is_refused_before_the_run(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(loggers, "version", missing)
    recipe = recipe_from_dict(tiny_recipe(loggers=["trackio"]))
    for refuse in (lambda: train(recipe, tmp_path), lambda: prepare(recipe)):
        with pytest.raises(UserError, match=r'pip install "hacrl\[trackio\]"'):
            refuse()
    assert not (tmp_path / recipe.name).exists()
    check_loggers([])


def test_tensorboard_reads_back_what_a_run_wrote(tiny_recipe: MakeRecipe, tmp_path: Path) -> None:
    (name, task) = next(iter(tiny_recipe()["tasks"].items()))
    evaluation = {"tasks": {name: task}, "at_start": True, "limit": 4}
    notes = Notes()
    recipe = recipe_from_dict(tiny_recipe(steps=2, loggers=["tensorboard"], evaluation=evaluation))
    run = train(recipe, tmp_path, notes)
    assert not [text for text in notes.texts if "logger" in text]
    events = EventAccumulator(str(run.path / "tensorboard"))
    events.Reload()
    written = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    for agent in ("kim", "lee"):
        rewards = [row["reward"] for row in written if row["agent"] == agent]
        scalars = events.Scalars(f"{agent}/reward")
        assert [one.step for one in scalars] == [1, 2]
        assert [one.value for one in scalars] == pytest.approx(rewards)
        assert [one.step for one in events.Scalars(f"{agent}/evaluation/{name}/value")] == [0, 2]
    logged = [name.split("/", 1)[1] for name in events.Tags()["scalars"] if name[:4] == "kim/"]
    (first, *_) = written
    gaps = {name for name, value in first.items() if value is None}
    assert not gaps & set(logged)
    assert {"capability", "omega/lee", "own/rows", "sources/lee/teaching"} <= set(logged)


def test_tensorboard_folder_may_be_elsewhere(tiny_recipe: MakeRecipe, tmp_path: Path) -> None:
    spec = {"type": "tensorboard", "folder": str(tmp_path / "boards")}
    write(recipe_from_dict(tiny_recipe(loggers=[spec])), tmp_path / "run")
    assert list((tmp_path / "boards" / "tiny").glob("events*"))
    assert not (tmp_path / "run").exists()


def test_wandb_offline_leaves_a_folder_to_be_synced(
    tiny_recipe: MakeRecipe, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    notes = Notes()
    spec = {"type": "wandb", "project": "x", "mode": "offline"}
    write(recipe_from_dict(tiny_recipe(loggers=[spec])), tmp_path, notes.note)
    assert notes.texts == []
    wandb.teardown()  # as at exit: the process that writes the file has ended
    (file,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    content = file.read_bytes()
    for name in ("kim/sources/lee/teaching", "kim/evaluation/sums/value"):
        assert name.encode() in content
    assert "wandb" not in capfd.readouterr().out


def test_trackio_stores_locally(tiny_recipe: MakeRecipe, tmp_path: Path) -> None:
    """In a process of its own: it takes its folder from the environment as it is imported."""
    raw = tiny_recipe(loggers=[{"type": "trackio", "project": "x"}])
    script = f"""
import json
from pathlib import Path
from hacrl.config import recipe_from_dict
from hacrl.training.loggers import Loggers
notes = []
with Loggers(recipe_from_dict({raw!r}), Path({str(tmp_path)!r}), notes.append) as loggers:
    loggers.step({ROWS!r})
    loggers.evaluations({EVALUATIONS!r})
from trackio.sqlite_storage import SQLiteStorage
print(json.dumps([notes, SQLiteStorage.get_logs("x", run="tiny")]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "TRACKIO_DIR": str(tmp_path / "trackio")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    notes, logs = json.loads(done.stdout)  # nothing else was printed
    assert notes == []
    for logged, expected in zip(logs, (STEP, EVALUATED), strict=True):
        assert {k: v for k, v in logged.items() if "/" in k} == expected
        assert logged["step"] == 5


def test_a_name_alone_takes_the_defaults_and_settings_are_checked(tiny_recipe: MakeRecipe) -> None:
    recipe = recipe_from_dict(
        tiny_recipe(loggers=["tensorboard", {"type": "wandb", "tags": ["a"]}])
    )
    assert [spec.model_dump() for spec in recipe.loggers] == [
        {"type": "tensorboard", "folder": None},
        {
            "type": "wandb",
            "project": "hacrl",
            "entity": None,
            "group": None,
            "tags": ["a"],
            "mode": "online",
        },
    ]
    assert recipe_from_dict(tiny_recipe(), ["loggers=[trackio]"]).loggers[0].type == "trackio"
    with pytest.raises(UserError, match=r"loggers\.0\.projct; did you mean project\?"):
        recipe_from_dict(tiny_recipe(loggers=[{"type": "wandb", "projct": "x"}]))
    with pytest.raises(UserError, match=r"loggers\.0: .*tensorboard"):
        recipe_from_dict(tiny_recipe(loggers=["tensorbord"]))

"""A run that was stopped ends bit for bit as one that was not."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

from hacrl.config import Recipe, recipe_from_dict
from hacrl.console.observer import Silent
from hacrl.errors import UserError
from hacrl.fleet import LocalFleet
from hacrl.records import Pool
from hacrl.runs.checkpoints import checkpoints
from hacrl.runs.folder import RunFolder
from hacrl.runs.sealing import damage
from hacrl.training import loop
from hacrl.training.train import train
from scripts.crash_test.comparing import content

MakeRecipe = Callable[..., dict[str, Any]]
WIDE = {"clip": {"delta": 0.9, "own_low": 0.3, "own_high": 0.3}}
LORA = {"rank": 4, "alpha": 8}


class Killed(BaseException):
    """As good as kill -9 for everything that happens in this process."""


class Notes(Silent):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


def killed_in(
    step: int, recipe: Recipe, root: Path, monkeypatch: pytest.MonkeyPatch, *, resume: bool = False
) -> None:
    """Run until the responses of a step (from 0) have been sampled and are about to be verified."""
    whole = loop.verify_rollouts

    def die(number: int, *rest: Any) -> Pool:
        if number == step:
            raise Killed
        return whole(number, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "verify_rollouts", die)
        with pytest.raises(Killed):
            train(recipe, root, resume=resume)


def agents_of(kind: str, qwen: Path, llama: Path) -> dict[str, Any]:
    kim, lee = {"model": str(qwen)}, {"model": str(llama)}
    return {
        "full": {"kim": kim, "lee": lee},
        "lora": {"kim": {**kim, "lora": LORA}, "lee": {**lee, "lora": LORA}},
        "one base, full beside": {
            "kim": {**kim, "lora": LORA},
            "may": {**kim, "lora": {"rank": 2, "target_modules": ["q_proj"]}},
            "lee": lee,
        },
    }[kind]


@pytest.mark.parametrize(
    "kind",
    [
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("full", "lora")),
        "one base, full beside",  # both of them together
    ],
)
def test_four_steps_equal_two_a_kill_and_two(
    tiny_recipe: MakeRecipe,
    qwen_folder: Path,
    llama_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    raw = tiny_recipe(
        **WIDE,
        agents=agents_of(kind, qwen_folder, llama_folder),
        steps=4,
        checkpoints={"every": 2, "keep": 3},
        update={"kl": 0.01, "mini_batches": 2},
        optimizer={"learning_rate": 3e-3, "schedule": "cosine", "warmup_updates": 2},
    )
    raw["evaluation"] = {
        "tasks": {"held": raw["tasks"]["bits"]},
        "every": 3,  # also between the checkpoint and the kill
        "at_start": True,
        "limit": 5,
    }
    recipe = recipe_from_dict(raw)
    straight = train(recipe, tmp_path / "straight").path
    killed_in(3, recipe, tmp_path / "killed", monkeypatch)
    killed = tmp_path / "killed" / "tiny"
    assert len((killed / "metrics.jsonl").read_text().splitlines()) == 3 * len(recipe.agents)
    notes = Notes()
    train(recipe, tmp_path / "killed", notes, resume=True)
    assert any("continuing after step 2" in text for text in notes.texts)
    ours, theirs = content(killed), content(straight)
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name] != theirs[name]] == []
    assert json.loads((killed / "state.json").read_text())["state"] == "finished"
    # The comparison is of something: every agent has learned since the checkpoint.
    for agent in recipe.agents:
        early, late = (checkpoints(killed / "checkpoints")[i].agents / agent for i in (0, 1))
        assert (early / "optimizer.safetensors").read_bytes() != (
            late / "optimizer.safetensors"
        ).read_bytes()


def stopped_at_three(tiny_recipe: MakeRecipe, root: Path, **changes: Any) -> dict[str, Any]:
    raw = tiny_recipe(**WIDE, checkpoints={"every": 1, "keep": 3}, **changes)
    train(recipe_from_dict(raw), root)
    return raw


def resumed(raw: dict[str, Any], root: Path, *overrides: str, accept: bool = False) -> list[str]:
    notes = Notes()
    train(recipe_from_dict(raw, overrides), root, notes, resume=True, accept_changes=accept)
    return notes.texts


def refused(raw: dict[str, Any], root: Path, *overrides: str) -> str:
    before = content(root / "tiny")
    with pytest.raises(UserError) as caught:
        resumed(raw, root, *overrides)
    assert len(str(caught.value).splitlines()) <= 2
    assert content(root / "tiny") == before, "a refusal changes nothing"
    return str(caught.value)


def test_more_steps_extend_a_finished_run(tiny_recipe: MakeRecipe, tmp_path: Path) -> None:
    raw = stopped_at_three(tiny_recipe, tmp_path / "1")
    texts = resumed(raw, tmp_path / "1", "steps=5", "threads=1")
    assert "changed since step-000003: steps was 3, is 5" in texts
    train(recipe_from_dict(raw, ["steps=5"]), tmp_path / "2")
    extended, straight = (content(tmp_path / run / "tiny") for run in "12")
    asked_for = "checkpoints/step-000003/recipe.yaml"
    assert extended.pop(asked_for) != straight.pop(asked_for), "three steps were asked for then"
    assert extended == straight


def test_a_run_without_a_checkpoint_begins_again(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tiny_recipe(**WIDE)
    assert any("no run to resume" in text for text in resumed(raw, tmp_path / "1"))
    killed_in(2, recipe_from_dict(raw), tmp_path / "2", monkeypatch)
    assert any("no checkpoint yet" in text for text in resumed(raw, tmp_path / "2"))
    assert content(tmp_path / "1" / "tiny") == content(tmp_path / "2" / "tiny")


def test_a_finished_run_stays_as_it_is(tiny_recipe: MakeRecipe, tmp_path: Path) -> None:
    raw = stopped_at_three(tiny_recipe, tmp_path)
    before = content(tmp_path / "tiny")
    resumed(raw, tmp_path)
    assert content(tmp_path / "tiny") == before


def test_a_changed_recipe_is_refused_by_name_unless_insisted(
    tiny_recipe: MakeRecipe, tmp_path: Path
) -> None:
    raw = stopped_at_three(tiny_recipe, tmp_path)
    text = refused(raw, tmp_path, "optimizer.learning_rate=0.002", "steps=4", "seed=3")
    assert "seed was 0, is 3 (and 1 more)" in text
    assert "--accept-changes" in text
    text = refused(raw, tmp_path, "steps=2")
    assert "steps: " in text
    assert "has completed 3" in text
    strangers = {**raw, "agents": {**raw["agents"], "eve": raw["agents"]["kim"]}}
    assert "agents.eve" in refused(strangers, tmp_path)
    texts = resumed(raw, tmp_path, "optimizer.learning_rate=0.002", "steps=4", accept=True)
    assert "changed since step-000003: optimizer.learning_rate was 0.001, is 0.002" in texts
    last = json.loads((tmp_path / "tiny" / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["learning_rate"] == 0.002


def test_changed_data_are_an_error_unless_insisted(
    tiny_recipe: MakeRecipe, problems_file: Path, tmp_path: Path
) -> None:
    data = tmp_path / "problems.jsonl"
    data.write_text(problems_file.read_text())
    raw = tiny_recipe(checkpoints={"every": 1})
    raw["tasks"]["bits"]["source"]["path"] = str(data)
    train(recipe_from_dict(raw), tmp_path)
    moved = tmp_path / "moved.jsonl"
    data.rename(moved)
    path = f"tasks.bits.source.path={moved}"
    resumed(raw, tmp_path, path, "steps=4")
    moved.write_text(problems_file.read_text().replace('"answer": "1"', '"answer": "0"', 1))
    text = refused(raw, tmp_path, path, "steps=5")
    assert "tasks.bits: its problems are not those that step-000004 was trained on" in text
    texts = resumed(raw, tmp_path, path, "steps=5", accept=True)
    assert any(text.endswith("; accepted") for text in texts)


def test_the_newest_undamaged_checkpoint_is_taken(tiny_recipe: MakeRecipe, tmp_path: Path) -> None:
    raw = stopped_at_three(tiny_recipe, tmp_path)
    whole = content(tmp_path / "tiny")
    root = tmp_path / "tiny" / "checkpoints"
    optimizer = root / "step-000003" / "agents" / "lee" / "optimizer.safetensors"
    flipped = bytearray(optimizer.read_bytes())
    flipped[len(flipped) // 2] ^= 4
    optimizer.write_bytes(flipped)
    weights = root / "step-000002" / "agents" / "kim" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    texts = resumed(raw, tmp_path)
    assert (
        "passed over checkpoints/step-000003: agents/lee/optimizer.safetensors has changed "
        "since it was written"
    ) in texts
    assert any("step-000002: agents/kim/model.safetensors has" in text for text in texts)
    assert any("continuing after step 1" in text for text in texts)
    assert content(tmp_path / "tiny") == whole
    for checkpoint in checkpoints(root):
        (checkpoint.path / "manifest.json").write_text("{")
    text = refused(raw, tmp_path)
    assert "no checkpoint is undamaged (step-000003: manifest.json is damaged" in text


def test_a_failing_disk_stops_the_run_with_its_checkpoint_intact(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tiny_recipe(**WIDE, checkpoints={"every": 1})
    straight = train(recipe_from_dict(raw), tmp_path / "straight").path
    whole = RunFolder.add_lessons

    def full(self: RunFolder, step: int, lessons: Any) -> None:
        if step == 2:
            raise OSError(28, "No space left on device")
        whole(self, step, lessons)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "add_lessons", full)
        with pytest.raises(UserError, match=r"tiny: cannot be written \(No space left") as caught:
            train(recipe_from_dict(raw), tmp_path / "full")
    assert "--resume" in str(caught.value)
    state = json.loads((tmp_path / "full" / "tiny" / "state.json").read_text())
    assert state["state"] == "failed"
    resumed(raw, tmp_path / "full")
    assert content(tmp_path / "full" / "tiny") == content(straight)


def test_updates_that_are_never_finite_end_the_run_with_their_rows_saved(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    norm = "hacrl.agents.learning.learner.clip_grad_norm_"
    monkeypatch.setattr(norm, lambda parameters, limit: torch.tensor(float("nan")))
    raw = tiny_recipe(**WIDE, update={"max_skipped": 3}, steps=9)
    notes = Notes()
    with pytest.raises(UserError, match=r"agent kim: skipped 4 updates in a row") as caught:
        train(recipe_from_dict(raw), tmp_path, notes)
    assert any("2 updates skipped" in text for text in notes.texts)
    faults = tmp_path / "tiny" / "faults" / "step-000001.parquet"
    assert str(faults) in str(caught.value)
    rows = pq.read_table(faults).to_pylist()
    assert {row["learner"] for row in rows} == {"kim", "lee"}
    assert {row["update"] for row in rows} == {0, 1}
    assert all(row["prompt_text"].endswith("=") and row["text"] is not None for row in rows)
    metrics = (tmp_path / "tiny" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["skipped_in_a_row"] for line in metrics] == [2, 2, 4, 4]


def test_the_best_checkpoint_is_kept_by_a_held_out_task(
    tiny_recipe: MakeRecipe, tmp_path: Path
) -> None:
    raw = tiny_recipe(**WIDE, steps=5, checkpoints={"every": 1, "keep": 1, "best": "held"})
    raw["evaluation"] = {"tasks": {"held": raw["tasks"]["bits"]}, "every": 1}
    run = train(recipe_from_dict(raw), tmp_path).path
    lines = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
    means = [
        sum(line["value"] for line in lines if line["step"] == step) / 2 for step in range(1, 6)
    ]
    best = max(range(1, 6), key=lambda step: (means[step - 1], step))
    kept = [checkpoint.step for checkpoint in checkpoints(run / "checkpoints")]
    assert kept == sorted({best, 5})
    assert checkpoints(run / "checkpoints")[0].progress().score == means[kept[0] - 1]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mounts a disk of so many bytes, or gives the mounted one another size."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def size(number: int) -> Path:
        again = ["-o", f"remount,size={number}"] if folder.is_mount() else ["-o", f"size={number}"]
        done = subprocess.run(["mount", "-t", "tmpfs", *again, "tmpfs", folder], check=False)
        if done.returncode:
            pytest.skip("mounting a disk takes the rights to do so")
        return folder

    yield size
    if folder.is_mount():
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("share", [0.4, 0.8])
def test_a_full_disk_stops_cleanly_wherever_it_fills_up(
    tiny_recipe: MakeRecipe,
    tmp_path: Path,
    small_disk: Callable[[int], Path],
    share: float,
) -> None:
    raw = tiny_recipe(**WIDE, checkpoints={"every": 1, "keep": 3})
    straight = train(recipe_from_dict(raw), tmp_path / "straight").path
    pages = sum(-(-f.stat().st_size // 4096) for f in straight.rglob("*") if f.is_file())
    disk = small_disk(int(pages * share) * 4096)
    with pytest.raises(UserError, match="No space left on device") as caught:
        train(recipe_from_dict(raw), disk)
    assert len(str(caught.value).splitlines()) <= 2
    assert "--resume" in str(caught.value)
    assert all(damage(one.path) is None for one in checkpoints(disk / "tiny" / "checkpoints"))
    small_disk(pages * 8192)
    resumed(raw, disk)
    assert content(disk / "tiny") == content(straight)


def test_a_checkpoint_is_written_while_the_agents_sample(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampled = threading.Event()
    sample, write = LocalFleet.sample, LocalFleet.checkpoint
    order: list[str] = []

    def sampling(self: LocalFleet, *args: Any, occasion: str, **options: Any) -> Any:
        rollouts = sample(self, *args, occasion=occasion, **options)
        order.append(f"sampled {occasion}")
        if occasion == "step 1":
            sampled.set()
        return rollouts

    def writing(self: LocalFleet, folder: Path) -> None:
        if folder.parent.name.startswith("step-000001"):
            assert sampled.wait(300), "the next rollouts wait for the checkpoint"
        write(self, folder)
        order.append(f"wrote {folder.parent.name.removesuffix('.part')}")

    monkeypatch.setattr(LocalFleet, "sample", sampling)
    monkeypatch.setattr(LocalFleet, "checkpoint", writing)
    run = train(recipe_from_dict(tiny_recipe(checkpoints={"every": 1})), tmp_path).path
    assert order[:3] == ["sampled step 0", "sampled step 1", "wrote step-000001"]
    waited = [
        json.loads(line)["seconds"] for line in (run / "metrics.jsonl").read_text().splitlines()
    ]
    assert all("save" in seconds for seconds in waited)

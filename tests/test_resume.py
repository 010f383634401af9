"""A run that was stopped ends bit for bit as one that was not (rows B44, B46, B48)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hacrl import loop
from hacrl.config import Recipe, recipe_from_dict
from hacrl.errors import UserError
from hacrl.records import Pool
from hacrl.runs.checkpoints import checkpoints
from hacrl.runs.folder import RunFolder
from hacrl.training import Silent, train

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


def content(run: Path) -> dict[str, Any]:
    """All that a run left behind, but for the time that it took."""
    found: dict[str, Any] = {}
    for path in sorted(run.rglob("*")):
        name = path.relative_to(run).as_posix()
        if path.is_dir() or path.name in ("manifest.json", "state.json"):
            continue
        if path.suffix == ".jsonl":
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            found[name] = [{k: v for k, v in row.items() if k != "seconds"} for row in rows]
        elif path.name == "run.json":
            found[name] = {k: v for k, v in json.loads(path.read_text()).items() if k != "lengths"}
        else:
            found[name] = path.read_bytes()
    return found


def killed_in(
    step: int, recipe: Recipe, root: Path, monkeypatch: pytest.MonkeyPatch, *, resume: bool = False
) -> None:
    """Run until the responses of a step (from 0) have been sampled and are about to be verified."""
    whole = loop.verify

    def die(number: int, *rest: Any) -> Pool:
        if number == step:
            raise Killed
        return whole(number, *rest)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(loop, "verify", die)
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


@pytest.mark.parametrize("kind", ["full", "lora", "one base, full beside"])
def test_six_steps_equal_three_a_kill_and_three(
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
        steps=6,
        checkpoints={"every": 3, "keep": 3},
        update={"kl": 0.01, "mini_batches": 2},
        optimizer={"learning_rate": 3e-3, "schedule": "cosine", "warmup_updates": 2},
    )
    raw["evaluation"] = {
        "tasks": {"held": raw["tasks"]["bits"]},
        "every": 2,
        "at_start": True,
        "limit": 5,
    }
    recipe = recipe_from_dict(raw)
    straight = train(recipe, tmp_path / "straight").path
    killed_in(4, recipe, tmp_path / "killed", monkeypatch)
    killed = tmp_path / "killed" / "tiny"
    assert len((killed / "metrics.jsonl").read_text().splitlines()) == 4 * len(recipe.agents)
    notes = Notes()
    train(recipe, tmp_path / "killed", notes, resume=True)
    assert any("continuing after step 3" in text for text in notes.texts)
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

"""Every file that a recipe names is compared when a run goes on."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hacrl.config import recipe_from_dict
from hacrl.console.observer import Silent
from hacrl.errors import UserError
from hacrl.training.named_files import file_marks
from hacrl.training.train import train

MakeRecipe = Callable[..., dict[str, Any]]


class Notes(Silent):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture
def raw(
    tiny_recipe: MakeRecipe,
    qwen_folder: Path,
    llama_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, Any]:
    """kim trains an adapter with a template of the user's, lee all weights; own rewards."""
    for name, folder in (("kim", qwen_folder), ("lee", llama_folder)):
        shutil.copytree(folder, tmp_path / name)
    (tmp_path / "plain.jinja").write_text("{{ messages[0].content }}")
    (tmp_path / "named_files_reward.py").write_text("def judge(prompt, response): return 1.0\n")
    (tmp_path / "judge.sh").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "judge.sh").chmod(0o755)
    (tmp_path / "rules.txt").write_text("be kind\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    recipe = tiny_recipe(steps=1, prompts_per_step=1, sampling={"group_size": 2})
    recipe["sampling"]["max_new_tokens"] = 2
    recipe["checkpoints"] = {"every": 1}
    recipe["agents"] = {
        "kim": {"model": "kim", "lora": {"rank": 2}, "chat_template": "plain.jinja"},
        "lee": {"model": "./lee"},
    }
    recipe["tasks"]["bits"]["verifier"] = {
        "type": "sum",
        "parts": [
            {"verifier": {"type": "python", "function": "named_files_reward:judge"}},
            {"verifier": {"type": "command", "argv": ["./judge.sh", "rules.txt"]}},
        ],
    }
    return recipe


def changed(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("plain.jinja", "agents.kim.chat_template: plain.jinja"),
        ("kim/config.json", "agents.kim.model: config.json"),
        ("kim/model.safetensors", "agents.kim.model: model.safetensors"),
        ("lee/tokenizer.json", "agents.lee.model: tokenizer.json"),
        ("named_files_reward.py", "tasks.bits.verifier.parts.0.verifier.function: named_files"),
        ("judge.sh", "tasks.bits.verifier.parts.1.verifier.argv: judge.sh"),
        ("rules.txt", "tasks.bits.verifier.parts.1.verifier.argv: rules.txt"),
    ],
)
def test_the_file_and_its_key_are_marked(raw: dict[str, Any], file: str, key: str) -> None:
    recipe = recipe_from_dict(raw)
    before = file_marks(recipe)
    assert file_marks(recipe) == before
    changed(Path(file))
    after = file_marks(recipe)
    (different,) = (place for place in before if after[place] != before[place])
    assert different.startswith(key)


def test_what_a_checkpoint_replaces_is_not_marked(raw: dict[str, Any]) -> None:
    weights = "agents.lee.model: model.safetensors"
    assert weights not in file_marks(recipe_from_dict(raw))
    assert weights in file_marks(recipe_from_dict(raw, ["update.kl=0.1"])), "the reference"


def test_a_changed_file_is_an_error_unless_insisted(raw: dict[str, Any], tmp_path: Path) -> None:
    train(recipe_from_dict(raw), tmp_path / "runs")
    more = recipe_from_dict(raw, ["steps=2"])
    changed(Path("rules.txt"))
    changed(Path("plain.jinja"))
    with pytest.raises(UserError) as caught:
        train(more, tmp_path / "runs", resume=True)
    assert str(caught.value) == (
        "agents.kim.chat_template: plain.jinja is not what it was when step-000001 was written "
        "(and 1 more); undo that, or accept it with --accept-changes"
    )
    notes = Notes()
    train(more, tmp_path / "runs", notes, resume=True, accept_changes=True)
    assert sum("is not what it was" in text and "; accepted" in text for text in notes.texts) == 2
    train(recipe_from_dict(raw, ["steps=3"]), tmp_path / "runs", resume=True)

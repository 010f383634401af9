"""What a user may name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from hacrl.config import AgentSpec
from hacrl.errors import UserError
from hacrl.evaluation.targets import Target, find_targets, target_fingerprint, without_thinking


@pytest.fixture
def run(
    reader: Path, writer: Path, tiny_recipe: Callable[..., dict[str, Any]], tmp_path: Path
) -> Path:
    """A run folder with two saved agents, and a joint checkpoint."""
    agents = {
        "lee": {"model": "x/y", "stop": ["<fill>"], "gguf": "a.gguf", "chat_template": "t.jinja"},
        "kim": {"model": "x/z"},
    }
    folder = tmp_path / "runs" / "tiny"
    for place in (folder / "agents", folder / "checkpoints" / "step-5" / "agents"):
        shutil.copytree(writer, place / "lee")
        shutil.copytree(reader, place / "kim")
    (folder / "recipe.yaml").write_text(yaml.safe_dump(tiny_recipe(agents=agents), sort_keys=False))
    (folder / "state.json").write_text("{}")
    return folder


def test_a_run_stands_for_its_agents_as_its_recipe_describes_them(run: Path) -> None:
    lee, kim = find_targets([str(run)], dtype="bfloat16")
    assert [target.label for target in (lee, kim)] == ["tiny/lee", "tiny/kim"]
    assert lee.spec.model == str(run / "agents" / "lee")
    assert (lee.spec.stop, lee.spec.gguf, lee.spec.chat_template) == (["<fill>"], None, None)
    assert lee.spec.dtype == "bfloat16"


@pytest.mark.parametrize("place", ["agents", "checkpoints/step-5", "checkpoints/step-5/agents"])
def test_a_folder_of_agents_stands_for_all(run: Path, place: str) -> None:
    assert [target.agent for target in find_targets([str(run / place)])] == ["lee", "kim"]


def test_one_agent_of_a_run_keeps_what_the_recipe_says(run: Path) -> None:
    (lee,) = find_targets([str(run / "agents" / "lee")])
    assert (lee.label, lee.spec.stop) == ("tiny/lee", ["<fill>"])


def test_a_model_folder_a_recipe_and_a_hub_id(run: Path, reader: Path) -> None:
    folder, start, _, hub = find_targets([str(reader), str(run / "recipe.yaml"), "Qwen/Qwen3-4B"])
    assert (folder.label, folder.spec) == ("reader", AgentSpec(model=str(reader)))
    assert (start.label, start.spec.model) == ("tiny/lee before", "x/y")
    assert (hub.label, hub.spec.model) == ("Qwen/Qwen3-4B", "Qwen/Qwen3-4B")


def test_runs_of_the_same_name_are_told_apart(run: Path, tmp_path: Path) -> None:
    twin = shutil.copytree(run, tmp_path / "more" / "tiny")
    labels = [target.label for target in find_targets([str(run), str(twin)])]
    assert len(set(labels)) == 4
    assert labels[3] == f"{twin}/kim"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("./none", "there is no such folder"),
        ("a/b/c", "there is no such folder"),
        ("empty", r"has neither a model \(config.json\) nor a run"),
        ("note.txt", "is a file"),
    ],
)
def test_what_is_no_target_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "note.txt").touch()
    with pytest.raises(UserError, match=message):
        find_targets([text])


def test_a_run_that_has_not_ended_says_so(run: Path) -> None:
    shutil.rmtree(run / "agents")
    with pytest.raises(UserError, match="has saved no agents yet; they appear in"):
        find_targets([str(run)])


def test_the_fingerprint_follows_the_contents_and_not_the_place(
    reader: Path, writer: Path, tmp_path: Path
) -> None:
    (first, other) = find_targets([str(reader), str(writer)])
    (moved,) = find_targets([str(shutil.copytree(reader, tmp_path / "moved"))])
    assert target_fingerprint(moved) == target_fingerprint(first) != target_fingerprint(other)
    changed = replace(first, spec=first.spec.model_copy(update={"stop": ["<fill>"]}))
    assert target_fingerprint(changed) != target_fingerprint(first)
    (tmp_path / "moved" / "README.md").write_text("notes")
    assert target_fingerprint(moved) == target_fingerprint(first)
    (tmp_path / "moved" / "chat_template.jinja").write_text("x")
    assert target_fingerprint(moved) != target_fingerprint(first)


@pytest.mark.parametrize(
    ("template", "given", "expected"),
    [
        ("{{ messages[0].content }}{% if enable_thinking %}hm{% endif %}", {}, False),
        (
            "{{ messages[0].content }}{% if enable_thinking %}hm{% endif %}",
            {"enable_thinking": True},
            True,
        ),
        ("{{ messages[0].content }}", {}, None),
        (None, {}, None),
    ],
)
def test_thinking_is_turned_off_where_there_is_a_switch(
    reader: Path,
    tmp_path: Path,
    template: str | None,
    given: dict[str, bool],
    expected: bool | None,
) -> None:
    folder = shutil.copytree(reader, tmp_path / "model")
    if template is not None:
        (folder / "chat_template.jinja").write_text(template)
    spec = AgentSpec(model=str(folder), template_args=given)
    target = without_thinking(Target("kim", "kim", str(folder), spec))
    assert target.spec.template_args.get("enable_thinking") == expected
    assert json.dumps(target.spec.template_args)

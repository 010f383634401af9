"""What keeps a fleet on Ray from starting, and that it is said in one line before work begins."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ray
import yaml

from hacrl.config import recipe_from_dict
from hacrl.errors import UserError
from hacrl.fleet import cluster, open_fleet
from hacrl.training import Silent, train

MakeRecipe = Callable[..., dict[str, Any]]


def refused(raw: dict[str, Any], root: Path) -> str:
    with pytest.raises(UserError) as caught:
        train(recipe_from_dict(raw), root)
    assert not (root / "tiny").exists(), "nothing is begun"
    return str(caught.value)


@pytest.mark.usefixtures("started_ray")
def test_a_model_that_cannot_be_loaded_is_named_as_anywhere(
    tiny_recipe: MakeRecipe, tmp_path: Path
) -> None:
    agents = {"kim": {"model": "/nowhere/kim"}}
    text = refused(tiny_recipe(agents=agents, fleet="ray"), tmp_path)
    assert text == "agent kim: model folder /nowhere/kim does not exist"


@pytest.mark.usefixtures("started_ray")
def test_what_the_cluster_lacks_is_named(
    tiny_recipe: MakeRecipe, qwen_folder: Path, tmp_path: Path
) -> None:
    raw = tiny_recipe(
        agents={"kim": {"model": str(qwen_folder), "resources": {"custom": {"unicorn": 2}}}},
        fleet={"type": "ray", "start_seconds": 1},
    )
    assert refused(raw, tmp_path) == (
        "agent kim (not placed) was lost in start: no place within 1 s, "
        "the agents want 2 unicorn, of which it has 0 in all"
    )


@pytest.mark.usefixtures("started_ray")
def test_a_run_folder_that_a_node_does_not_see_is_refused(
    tiny_recipe: MakeRecipe, qwen_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "touch", lambda self: None)  # as good as on another machine
    agents = {"kim": {"model": str(qwen_folder)}}
    text = refused(tiny_recipe(agents=agents, fleet="ray"), tmp_path)
    assert f"does not see {tmp_path}; put the run folder on a file system that all" in text


def test_ray_is_an_extra(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "hacrl.fleet.ray", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    recipe = recipe_from_dict(tiny_recipe(fleet="ray"))
    with (
        pytest.raises(UserError, match=r'fleet: Ray is not installed; pip install "hacrl\[ray\]"'),
        open_fleet(recipe, tmp_path / "tiny", Silent().note),
    ):
        pass


@pytest.mark.parametrize("address", ["127.0.0.1:9", "no-such-host.invalid:6379"])
def test_a_cluster_that_is_not_there_is_refused_at_once(
    tiny_recipe: MakeRecipe, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    recipe = recipe_from_dict(tiny_recipe(fleet={"type": "ray", "address": address}))
    with pytest.raises(
        UserError, match=f"fleet.address: no Ray cluster can be joined at {address}"
    ):
        cluster.connect(recipe)


@pytest.mark.slow
def test_the_command_line_starts_ray_itself(tiny_recipe: MakeRecipe, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(tiny_recipe()))
    command = "from hacrl.cli import main; main()"
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    arguments = ["train", "tiny.yaml", "--fleet", "ray"]
    done = subprocess.run(
        [sys.executable, "-c", command, *arguments],
        cwd=tmp_path,
        env=plain | {"HOME": str(tmp_path)},  # where Ray keeps its token
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("finished: runs/tiny")
    assert (tmp_path / "runs" / "tiny" / "agents" / "kim" / "model.safetensors").is_file()
    assert "type: ray" in (tmp_path / "runs" / "tiny" / "recipe.yaml").read_text()

"""What keeps a fleet on Ray from starting, and that it is said in one line before work begins."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ray
import yaml

from hacrl.config import recipe_from_dict
from hacrl.errors import UserError
from hacrl.fleet import cluster, open_fleet, placing
from hacrl.fleet.placing import fits_labels
from hacrl.fleet.ranks import Asked, Ranks
from hacrl.fleet.ray import RayFleet
from hacrl.training.train import Silent, train

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
@pytest.mark.parametrize(
    ("resources", "words"),
    [
        (
            {"node": {"zone": "atlantis"}},
            "no node has the labels of agents.kim.resources.node, zone: atlantis (there are none",
        ),
        ({"gpus": 3}, "the agents want 3 GPU, of which it has 0 in all"),
        ({"custom": {"unicorn": 2}}, "the agents want 2 unicorn, of which it has 0 in all"),
    ],
)
@pytest.mark.parametrize("ranks", [1, 2])
def test_an_own_cluster_that_lacks_something_is_refused_at_once(
    tiny_recipe: MakeRecipe,
    qwen_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    resources: dict[str, Any],
    words: str,
    ranks: int,
) -> None:
    """`start_seconds` is a quarter of an hour; nothing is placed, let alone waited for."""
    monkeypatch.setattr(cluster, "connect", lambda recipe, note: "own")
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    monkeypatch.setattr(RayFleet, "_place", lambda self, name: pytest.fail("nothing is placed"))
    if ranks == 2 and (amount := words.partition(" want ")[2][:1]):
        words = words.replace(f"want {amount}", f"want {2 * int(amount)}")
    spec = {"model": str(qwen_folder), "resources": resources, "ranks": ranks}
    text = refused(tiny_recipe(agents={"kim": spec}, fleet="ray"), tmp_path)
    assert text.startswith(f"fleet: {words}")
    assert "nothing can join it\nLower agents.*.resources, or name a cluster" in text


@pytest.mark.usefixtures("started_ray")
def test_a_node_that_nobody_has_is_named_where_others_may_join(
    tiny_recipe: MakeRecipe, qwen_folder: Path, tmp_path: Path
) -> None:
    spec = {"model": str(qwen_folder), "resources": {"node": {"zone": "atlantis"}}}
    raw = tiny_recipe(agents={"kim": spec}, fleet={"type": "ray", "start_seconds": 0.5})
    assert refused(raw, tmp_path).startswith(
        "agent kim (not placed) was lost in start: no place within 0.5 s, no node has the labels "
        "of agents.kim.resources.node, zone: atlantis"
    )


@pytest.mark.usefixtures("started_ray")
def test_an_agent_that_is_placed_and_does_not_answer_is_said_to_hang(
    tiny_recipe: MakeRecipe, qwen_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that it has no place: it has one, and its model takes longer than it may."""
    started = Ranks.start

    def placed_first(self: Ranks, *args: Any, **options: Any) -> Asked:
        asked = started(self, *args, **options)
        assert ray.wait(self._arrivals, timeout=120)[0]
        return Asked(self, asked.actors, [_never.remote()])

    monkeypatch.setattr(Ranks, "start", placed_first)
    raw = tiny_recipe(
        agents={"kim": {"model": str(qwen_folder)}}, fleet={"type": "ray", "start_seconds": 0.5}
    )
    text = refused(raw, tmp_path)
    assert re.match(
        r"agent kim \(process \d+ on .*\) was lost in start: no answer within 0.5 s", text
    )


@ray.remote(num_cpus=0)
def _never() -> None:
    time.sleep(3600)


@pytest.mark.usefixtures("started_ray")
def test_a_limit_below_a_second_is_kept(
    tiny_recipe: MakeRecipe, qwen_folder: Path, tmp_path: Path
) -> None:
    raw = tiny_recipe(
        agents={"kim": {"model": str(qwen_folder)}},
        fleet={"type": "ray", "seconds": 0.001, "retries": 0},
    )
    with pytest.raises(UserError, match=r"was lost in sample: no answer within 0\.001 s"):
        train(recipe_from_dict(raw), tmp_path)


@pytest.mark.usefixtures("started_ray")
@pytest.mark.parametrize(
    "resources", [{"node": {"zone": "in(a"}}, {"gpus": 1.5}, {"custom": {"CPU": 1}}]
)
def test_what_ray_cannot_read_is_named_by_its_key(
    tiny_recipe: MakeRecipe, qwen_folder: Path, tmp_path: Path, resources: dict[str, Any]
) -> None:
    spec = {"model": str(qwen_folder), "resources": resources}
    raw = tiny_recipe(agents={"kim": spec}, fleet={"type": "ray", "start_seconds": 1})
    text = refused(raw, tmp_path)
    assert text.startswith("agents.kim.resources: ")
    assert len(text.splitlines()) == 1


GPU_NODE = {"Alive": True, "Resources": {"CPU": 8.0, "GPU": 1.0}, "Labels": {"zone": "a"}}
CPU_NODE = {"Alive": True, "Resources": {"CPU": 2.0}, "Labels": {"zone": "b"}}
DEAD = {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}, "Labels": {"zone": "c"}}


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ({}, None),
        ({"gpus": 1, "cpus": 8}, None),
        ({"gpus": 1, "node": {"zone": "a"}}, None),
        ({"gpus": 0, "node": {"zone": "!c"}}, None),
        ({"gpus": 0, "node": {"zone": "in(b, c)", "disk": "!slow"}}, None),
        ({"gpus": 2}, "the agents want 2 GPU, of which it has 1 in all"),
        ({"cpus": 10}, "no single node has 10 CPU and 1 GPU, as agents.kim.resources asks"),
        (
            {"gpus": 1, "node": {"zone": "b"}},
            "no single node with zone: b has 1 CPU and 1 GPU, as agents.kim.resources asks",
        ),
        (
            {"node": {"zone": "c"}},
            "no node has the labels of agents.kim.resources.node, zone: c "
            "(there is zone: a, zone: b)",
        ),
        (
            {"node": {"disk": "fast"}},
            "no node has the labels of agents.kim.resources.node, disk: fast "
            "(there are none of these)",
        ),
    ],
)
def test_what_speaks_against_a_place(
    tiny_recipe: MakeRecipe,
    monkeypatch: pytest.MonkeyPatch,
    resources: dict[str, Any],
    words: str | None,
) -> None:
    monkeypatch.setattr(ray, "nodes", lambda: [GPU_NODE, CPU_NODE, DEAD])
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 10.0, "GPU": 1.0})
    recipe = recipe_from_dict(tiny_recipe(agents={"kim": {"model": "x", "resources": resources}}))
    assert placing.obstacle(recipe) == words
    assert placing.obstacle(recipe, "kim") == words


@pytest.mark.parametrize(
    ("value", "zones"),
    [
        ("a", "a"),
        ("!a", "b-"),
        ("in(a,b)", "ab"),
        ("in(a, c)", "a"),
        ("!in(a,b)", "-"),
        ("!in(c)", "ab-"),
    ],
)
def test_labels_are_read_as_ray_reads_them(value: str, zones: str) -> None:
    known = {"a": {"zone": "a"}, "b": {"zone": "b"}, "-": {"other": "a"}}
    assert "".join(k for k, own in known.items() if fits_labels(own, {"zone": value})) == zones


LONG = "AF_UNIX path length cannot exceed 107 bytes: /x/ray/session/sockets/plasma_store"


@pytest.mark.parametrize("variable", ["TMPDIR", "RAY_TMPDIR"])
@pytest.mark.parametrize("error", [OSError(LONG), PermissionError(13, "Permission denied")])
def test_where_rays_files_cannot_be_it_takes_the_usual_place(
    tiny_recipe: MakeRecipe, monkeypatch: pytest.MonkeyPatch, variable: str, error: OSError
) -> None:
    asked: list[str | None] = []

    def init(_temp_dir: str | None = None, **_: object) -> None:
        asked.append(_temp_dir)
        if _temp_dir is None:
            raise error

    alone(monkeypatch, init)
    monkeypatch.setenv(variable, "/x")
    notes: list[str] = []
    assert cluster.connect(recipe_from_dict(tiny_recipe(fleet="ray")), notes.append) == "own"
    assert asked == [None, "/tmp/ray"]
    why = error.strerror or "the paths of its sockets would be too long"
    assert notes == [f"Ray cannot keep its files below {variable} ({why}); they are in /tmp/ray"]


@pytest.mark.parametrize("variable", ["TMPDIR", "RAY_TMPDIR", None])
def test_where_ray_can_be_started_nowhere_one_line_says_why(
    tiny_recipe: MakeRecipe, monkeypatch: pytest.MonkeyPatch, variable: str | None
) -> None:
    def init(**_: object) -> None:
        raise OSError(28, "No space left on device")

    alone(monkeypatch, init)
    if variable:
        monkeypatch.setenv(variable, "/x")
    with pytest.raises(UserError) as caught:
        cluster.connect(recipe_from_dict(tiny_recipe(fleet="ray")), Silent().note)
    assert len(str(caught.value).splitlines()) == 1
    assert "No space left on device" in str(caught.value)
    assert (variable or "fleet: Ray cannot be started") in str(caught.value)


def test_a_machine_too_busy_for_ray_is_one_line(
    tiny_recipe: MakeRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray has no class of its own for processes of its own that are late."""

    def init(**_: object) -> None:
        raise Exception("The current node timed out during startup.")

    alone(monkeypatch, init)
    with pytest.raises(UserError, match=r"^fleet: Ray cannot be started .*timed out") as caught:
        cluster.connect(recipe_from_dict(tiny_recipe(fleet="ray")), Silent().note)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(("wanted", "niceness"), [(None, "0"), ("5", "5")])
def test_agents_on_an_own_ray_go_before_nothing_and_after_nothing(
    tiny_recipe: MakeRecipe,
    monkeypatch: pytest.MonkeyPatch,
    wanted: str | None,
    niceness: str,
) -> None:
    """By Ray's own default they would go after everything else; a user's own wish stands."""
    variable = "RAY_worker_niceness"
    seen: list[str | None] = []
    alone(monkeypatch, lambda **_: seen.append(os.environ.get(variable)))
    monkeypatch.delenv(variable)
    if wanted is not None:
        monkeypatch.setenv(variable, wanted)
    cluster.connect(recipe_from_dict(tiny_recipe(fleet="ray")), Silent().note)
    assert seen == [niceness]


def alone(monkeypatch: pytest.MonkeyPatch, init: Callable[..., None]) -> None:
    """As if no Ray had been started here yet."""
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    for name in ("RAY_ADDRESS", "RAY_TMPDIR", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)


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
        cluster.connect(recipe, Silent().note)


@pytest.mark.slow
def test_the_command_line_starts_ray_itself(tiny_recipe: MakeRecipe, tmp_path: Path) -> None:
    """Also where the folder for temporary files has a longer path than a socket may have."""
    far = tmp_path / ("far-" * 30)
    far.mkdir()
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(tiny_recipe()))
    command = "from hacrl.cli.app import main; main()"
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    arguments = ["train", "tiny.yaml", "--fleet", "ray"]
    done = subprocess.run(
        [sys.executable, "-c", command, *arguments],
        cwd=tmp_path,
        env=plain | {"HOME": str(tmp_path), "TMPDIR": str(far)},  # Ray keeps its token at home
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "finished: runs/tiny" in done.stdout
    assert "Ray cannot keep its files below TMPDIR (the paths of its sockets would" in done.stdout
    assert (tmp_path / "runs" / "tiny" / "agents" / "kim" / "model.safetensors").is_file()
    assert "type: ray" in (tmp_path / "runs" / "tiny" / "recipe.yaml").read_text()

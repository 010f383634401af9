"""Agents that die or hang in the middle of a run (the processes are really killed or stopped)."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hacrl.config import recipe_from_dict
from hacrl.errors import UserError
from hacrl.fleet.ray import RayFleet
from hacrl.fleet.worker import Place
from hacrl.runs.checkpoints import checkpoints
from hacrl.runs.sealing import damage
from hacrl.training.train import Silent, train
from tests.fleet.test_contract import WIDE, differing

MakeRecipe = Callable[..., dict[str, Any]]

pytestmark = pytest.mark.usefixtures("started_ray")


class Attacker(Silent):
    """Strikes an agent's process as a phase of a step begins, once for each entry.

    Args:
        places: where the agents are, kept up to date.
        plan: by phase and step, the agent and how.
    """

    def __init__(
        self,
        places: dict[str, Place],
        plan: dict[tuple[str, int], tuple[str, Callable[[int], None]]],
    ) -> None:
        self.notes: list[str] = []
        self._places = places
        self._plan = plan

    def note(self, text: str) -> None:
        self.notes.append(text)

    def phase(self, name: str, step: int) -> None:
        if (name, step) in self._plan:
            agent, strike = self._plan.pop((name, step))
            strike(self._places[agent].process)

    def notes_of(self, word: str) -> list[str]:
        return [text for text in self.notes if word in text]


class Patient(Attacker):
    """Lets the run take its time until the lost agent is back."""

    def phase(self, name: str, step: int) -> None:
        super().phase(name, step)
        if name == "sample" and step > 2 and not self.notes_of("has rejoined"):
            time.sleep(2)


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)


def stop(process: int) -> None:
    os.kill(process, signal.SIGSTOP)


def stop_then_kill(process: int) -> None:
    """Dies with a call under way: it can answer no more from now on, and ends a little later."""
    stop(process)
    threading.Timer(1.0, kill, [process]).start()


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> dict[str, Place]:
    """Where the agents of the fleet are that the test starts."""
    found: dict[str, Place] = {}
    start = RayFleet.start

    def started(self: RayFleet, checkpoint: Path | None) -> RayFleet:
        fleet = start(self, checkpoint)
        found.update(fleet.places)
        return fleet

    monkeypatch.setattr(RayFleet, "start", started)
    return found


@pytest.mark.slow
def test_a_run_survives_deaths_and_ends_as_if_there_had_been_none(
    tiny_recipe: MakeRecipe, places: dict[str, Place], tmp_path: Path
) -> None:
    raw = tiny_recipe(**WIDE, steps=4, checkpoints={"every": 2, "keep": 3})
    undisturbed = train(recipe_from_dict(raw), tmp_path / "local").path
    attacker = Attacker(
        places,
        {
            ("learn", 0): ("lee", stop_then_kill),  # there is no checkpoint yet
            ("verify", 3): ("kim", kill),  # idle at that time
        },
    )
    disturbed = train(recipe_from_dict(raw, ["fleet=ray"]), tmp_path / "ray", attacker).path
    assert differing(disturbed, undisturbed) == []
    first, second = attacker.notes_of("was lost in")
    assert first.startswith("agent lee (process ")
    assert "was lost in learn: its process ended at once, most often killed" in first
    assert "agent kim" in second
    assert "was lost in learn: its process" in second
    (onwards,) = attacker.notes_of("continuing after")
    assert onwards.startswith("continuing after step 2")


@pytest.mark.slow
def test_an_agent_that_hangs_is_ended_and_brought_back(
    tiny_recipe: MakeRecipe, places: dict[str, Place], tmp_path: Path
) -> None:
    raw = tiny_recipe(**WIDE, checkpoints={"every": 1})
    undisturbed = train(recipe_from_dict(raw), tmp_path / "local").path
    raw["fleet"] = {"type": "ray", "seconds": 30}
    attacker = Attacker(places, {("sample", 1): ("kim", stop)})
    disturbed = train(recipe_from_dict(raw), tmp_path / "ray", attacker).path
    assert differing(disturbed, undisturbed) == []
    (lost,) = attacker.notes_of("was lost in")
    assert "was lost in sample: no answer within 30 s, and it was ended" in lost


@pytest.mark.slow
def test_the_others_go_on_and_take_the_lost_one_back(
    tiny_recipe: MakeRecipe, places: dict[str, Place], tmp_path: Path
) -> None:
    raw = tiny_recipe(**WIDE, steps=40, checkpoints={"every": 1})
    raw["fleet"] = {"type": "ray", "on_peer_failure": "continue"}
    attacker = Patient(places, {("learn", 1): ("lee", kill)})
    run = train(recipe_from_dict(raw), tmp_path, attacker).path
    assert "the others go on" in attacker.notes_of("was lost in learn")[0]
    assert attacker.notes_of("agent lee has rejoined")
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    there = {step: [r for r in rows if r["step"] == step] for step in range(40)}
    missing = [step for step, own in there.items() if [r["agent"] for r in own] == ["kim"]]
    assert missing == list(range(1, 1 + len(missing))), "it is gone once, and then it is there"
    assert 1 < len(missing) < 40
    assert there[1][0]["sources"].keys() == {"lee"}, "it had sampled before it was lost"
    assert there[2][0]["sources"] == {}
    assert there[39][0]["sources"].keys() == {"lee"}
    # It learned in step 0 and was saved after it; it goes on from there.
    back = there[missing[-1] + 1][1]
    assert back["policy_version"] == there[0][1]["updates"] == 2
    meanwhile = pq.read_table(run / "rollouts" / "step-000002.parquet")
    assert set(meanwhile["agent"].to_pylist()) == {"kim"}
    for agent in ("kim", "lee"):
        assert (run / "agents" / agent / "model.safetensors").is_file()
    assert all(damage(c.path) is None for c in checkpoints(run / "checkpoints"))


def test_the_run_ends_when_the_retries_are_used_up(
    tiny_recipe: MakeRecipe, places: dict[str, Place], tmp_path: Path
) -> None:
    raw = tiny_recipe(checkpoints={"every": 1}, fleet={"type": "ray", "retries": 0})
    attacker = Attacker(places, {("learn", 1): ("kim", kill)})
    with pytest.raises(UserError, match=r"agent kim \(process \d+ on .*\) was lost in") as caught:
        train(recipe_from_dict(raw), tmp_path, attacker)
    assert len(str(caught.value).splitlines()) == 2
    assert "--resume" in str(caught.value)
    raw["fleet"] = "local"
    resumed = train(recipe_from_dict(raw), tmp_path, resume=True).path
    straight = train(recipe_from_dict(raw), tmp_path / "straight").path
    assert differing(resumed, straight) == []


@pytest.mark.slow
def test_a_lost_node_is_named_and_its_agent_lives_on_another(
    tiny_recipe: MakeRecipe, places: dict[str, Place], tmp_path: Path, started_ray: Any
) -> None:
    raw = tiny_recipe(**WIDE, checkpoints={"every": 1})
    undisturbed = train(recipe_from_dict(raw), tmp_path / "local").path
    raw["fleet"] = {"type": "ray", "seconds": 120}
    raw["agents"]["lee"]["resources"] = {"custom": {"spot": 1}, "node": {"zone": "b"}}
    spot = {"num_cpus": 1, "resources": {"spot": 1}, "object_store_memory": 100 * 2**20}
    elsewhere = started_ray.add_node(**spot, labels={"zone": "a"})
    first = started_ray.add_node(**spot, labels={"zone": "b"})
    found: list[str] = []

    def lose_the_node(process: int) -> None:
        found.append(places["lee"].node)
        started_ray.remove_node(first, allow_graceful=False)
        nodes.append(started_ray.add_node(**spot, labels={"zone": "b"}))

    nodes = [elsewhere]
    attacker = Attacker(places, {("learn", 1): ("lee", lose_the_node)})
    disturbed = train(recipe_from_dict(raw), tmp_path / "ray", attacker).path
    found.append(places["lee"].node)
    for node in nodes:
        started_ray.remove_node(node)
    assert found == [first.node_id, nodes[1].node_id], "never where the label is another"
    assert differing(disturbed, undisturbed) == []
    (lost,) = attacker.notes_of("was lost in")
    assert "agent lee" in lost
    assert "its node has left the cluster" in lost

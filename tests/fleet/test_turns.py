"""Agents that share devices work one after another, the others at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hacrl.config import recipe_from_dict
from hacrl.fleet.ray import RayFleet
from hacrl.fleet.turns import turns
from hacrl.training.train import train
from tests.fleet.test_contract import differing

MakeRecipe = Callable[..., dict[str, Any]]


def test_no_two_of_a_group_have_a_device_in_common() -> None:
    devices = {"a": {"x 0"}, "b": {"x 0"}, "c": {"x 1"}, "d": {"x 0", "x 1"}, "e": {"y 0"}}
    assert turns(devices) == [["a", "c", "e"], ["b"], ["d"]]


def test_who_has_no_device_waits_for_nobody() -> None:
    assert turns({"a": set(), "b": {"x 0"}, "c": set(), "d": {"x 0"}}) == [["a", "b", "c"], ["d"]]
    assert turns({}) == []


@pytest.mark.slow
def test_agents_on_ray_share_a_device_in_turns(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started_ray: Any
) -> None:
    """Ray is told of a GPU that is not there; the agents compute on the CPU and ask for half."""
    node = started_ray.add_node(
        num_cpus=2, num_gpus=1, resources={"gpu-node": 2}, object_store_memory=100 * 2**20
    )
    raw = tiny_recipe(fleet={"type": "ray", "in_turns": True})
    for agent in raw["agents"].values():
        agent["device"] = "cpu"
        agent["resources"] = {"gpus": 0.5, "custom": {"gpu-node": 1}}
    asked: list[list[list[str]]] = []
    whole = RayFleet._turns

    def noted(self: RayFleet, names: Sequence[str]) -> list[list[str]]:
        asked.append(whole(self, names))
        return asked[-1]

    monkeypatch.setattr(RayFleet, "_turns", noted)
    there = train(recipe_from_dict(raw), tmp_path / "ray").path
    started_ray.remove_node(node)
    assert len(asked) > 6
    assert all(groups == [["kim"], ["lee"]] for groups in asked)
    raw["fleet"] = "local"
    assert differing(there, train(recipe_from_dict(raw), tmp_path / "local").path) == []

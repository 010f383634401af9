"""From what agents need to what a recipe needs of its devices, and what makes it fit."""

from __future__ import annotations

from typing import Any

import pytest
from transformers import LlamaConfig, PretrainedConfig

from hacrl.config import recipe_from_dict
from hacrl.config.schema import Recipe
from hacrl.errors import UserError
from hacrl.planning.devices import Devices, parse_devices
from hacrl.planning.placement import needed, place
from hacrl.planning.plan import Planner
from hacrl.planning.rehearsal import Need

GB = 10**9
NEEDS = {
    "small": Need({"load": 1, "learn": 5}, resident=3, weights=1, host=0),
    "large": Need({"load": 2, "learn": 9}, resident=6, weights=2, host=0),
}


def recipe(**changes: Any) -> Recipe:
    raw = {
        "name": "x",
        "steps": 1,
        "prompts_per_step": 4,
        "agents": {"small": {"model": "a/small"}, "large": {"model": "a/large"}},
        "tasks": {"t": {"source": {"type": "jsonl", "path": "x"}, "verifier": {"type": "exact"}}},
        **changes,
    }
    return recipe_from_dict(raw)


def test_devices_are_read() -> None:
    assert parse_devices("8x80GB") == Devices(8, 80 * GB, "cuda")
    assert parse_devices("1x0.5gb".replace("0.5", "1.5")) == Devices(1, 3 * GB // 2, "cuda")
    assert parse_devices("cpu").type == "cpu"
    assert str(parse_devices("4x24GB")) == "4x24GB"


@pytest.mark.parametrize("text", ["", "8", "8x80", "0x80GB", "8x0GB", "8x80MB", "-1x8GB", "x8GB"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="such as 8x80GB"):
        parse_devices(text)


def test_agents_of_one_process_keep_what_they_have_while_another_works() -> None:
    devices = Devices(2, GB, "cuda")
    both = ("small", "large")
    assert place(recipe(), devices) == [both, ()]
    assert needed(recipe(), both, NEEDS, devices)["learn"] == max(5 + 6, 3 + 9)
    in_turns = recipe(fleet={"type": "local", "in_turns": True})
    assert needed(in_turns, both, NEEDS, devices)["learn"] == 9
    assert needed(recipe(fleet="ray"), both, NEEDS, devices)["learn"] == 5 + 9


def test_ranks_have_devices_of_their_own() -> None:
    agents = {
        "small": {"model": "a/small", "resources": {"gpus": 0.5}},
        "large": {"model": "a/large", "ranks": 2},
    }
    cluster = recipe(fleet="ray", agents=agents)
    assert place(cluster, Devices(3, GB, "cuda")) == [("small",), ("large",), ("large",)]
    assert place(cluster, Devices(2, GB, "cuda")) is None


def test_an_engine_takes_its_share_while_it_is_awake() -> None:
    devices = Devices(1, 10 * GB, "cuda")
    needs = {"small": Need({"sample": 7, "learn": 7}, resident=7, weights=1, host=0)}
    agents = {"small": {"model": "a/s", "sampler": {"type": "vllm", "gpu_memory_utilization": 0.5}}}
    cluster = recipe(fleet="ray", agents=agents)
    taken = needed(cluster, ("small",), needs, devices)
    assert taken["sample"] == 5 * GB + 7
    assert GB // 2 < taken["learn"] < 2 * GB


def _weighed(
    name: str, recipe: Recipe, config: PretrainedConfig, prompt_tokens: int, device_type: str
) -> Need:
    """Of 8 GB in learning, a half of which checkpointing saves, over the ranks."""
    size = 8 * GB // recipe.models[name].ranks
    if recipe.update.gradient_checkpointing:
        size //= 2
    return Need({"learn": size}, resident=size // 2, weights=1, host=0)


@pytest.mark.parametrize(
    ("devices", "changes"),
    [
        ("2x16GB", []),
        ("1x10GB", ["update.gradient_checkpointing=true"]),
        ("1x5GB", ["update.gradient_checkpointing=true", "fleet.in_turns=true"]),
        ("2x9GB", ["update.gradient_checkpointing=true"]),
        ("1x1GB", None),
    ],
)
def test_the_smallest_change_is_found(
    monkeypatch: pytest.MonkeyPatch, devices: str, changes: list[str] | None
) -> None:
    monkeypatch.setattr("hacrl.planning.plan.rehearse", _weighed)
    told: list[str] = []
    planner = Planner(
        {"small": LlamaConfig(), "large": LlamaConfig()}, 64, parse_devices(devices), told.append
    )
    given = recipe(update={"micro_batch_tokens": 64})
    made = planner.change(given)
    assert made == changes or (made and changes and set(made) == set(changes))
    assert told, "it says what it rehearses"
    assert planner.fit(given).fits == (changes == [])

"""An agent of several ranks learns what it would learn on one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from hacrl.config import recipe_from_dict
from hacrl.errors import UserError
from hacrl.fleet.ray import RayFleet
from hacrl.fleet.worker import Place
from hacrl.training.train import train
from tests.fleet.test_losses import Attacker, Patient, kill, stop
from tests.tolerances import assert_close_gradients, rounding, terms

MakeRecipe = Callable[..., dict[str, Any]]
WIDE = {
    "clip": {"delta": 0.9, "own_low": 0.3, "own_high": 0.3},
    # So large an ε keeps AdamW from dividing rounding by its own size.
    "optimizer": {"learning_rate": 1e-2, "epsilon": 1.0},
}


def several(raw: dict[str, Any], ranks: int = 2, seconds: float = 600) -> dict[str, Any]:
    agents = {name: {**spec, "ranks": ranks} for name, spec in raw["agents"].items()}
    agents["lee"]["sampler"] = {"type": "hf", "gather": True}
    return raw | {"agents": agents, "fleet": {"type": "ray", "seconds": seconds}}


def assert_close(one: Path, other: Path, *, steps: int) -> None:
    """The same rollouts, and metrics and weights up to rounding."""
    for step in range(steps):
        name = f"rollouts/step-{step:06d}.parquet"
        tables = [pq.read_table(run / name).to_pydict() for run in (one, other)]
        assert tables[0]["text"] == tables[1]["text"]
    texts = [(run / "metrics.jsonl").read_text() for run in (one, other)]
    rows = [[json.loads(line) for line in text.splitlines()] for text in texts]
    models = {
        agent: AutoModelForCausalLM.from_pretrained(one / "agents" / agent)
        for agent in ("kim", "lee")
    }
    summed = {agent: 2 * steps * terms(model, 12) for agent, model in models.items()}
    for left, right in zip(*rows, strict=True):
        allowed = rounding(summed[left["agent"]])
        for key in ("loss", "gradient_norm", "reward", "updates"):
            assert left[key] == pytest.approx(right[key], abs=allowed)
        for key in ("computed", "ratio_mean", "inside", "teaching"):
            assert left["own"][key] == pytest.approx(right["own"][key], abs=allowed)
    for agent in ("kim", "lee"):
        for name, kinds in (
            ("model", [".weight"]),
            ("optimizer", [":step", ":exp_avg", ":exp_avg_sq"]),
        ):
            path = f"checkpoints/step-{steps:06d}/agents/{agent}/{name}.safetensors"
            left_tensors, right_tensors = load_file(one / path), load_file(other / path)
            assert left_tensors.keys() == right_tensors.keys()
            for kind in kinds:
                keys = [key for key in left_tensors if key.endswith(kind)]
                found, expected = ([t[k] for k in keys] for t in (left_tensors, right_tensors))
                assert_close_gradients(found, expected, summed[agent])


@pytest.mark.usefixtures("started_ray")
def test_two_ranks_learn_as_one_and_go_on_as_one(tiny_recipe: MakeRecipe, tmp_path: Path) -> None:
    plain = tiny_recipe(**WIDE, steps=2, checkpoints={"every": 1}, update={"kl": 0.01})
    alone = train(recipe_from_dict(plain), tmp_path / "alone").path
    spread = tmp_path / "spread"
    train(recipe_from_dict(several(plain) | {"steps": 1}), spread)
    onwards = train(recipe_from_dict(plain), spread, resume=True).path
    assert_close(onwards, alone, steps=2)


@pytest.mark.slow
@pytest.mark.usefixtures("started_ray")
def test_one_rank_goes_on_as_two(tiny_recipe: MakeRecipe, tmp_path: Path) -> None:
    plain = tiny_recipe(**WIDE, steps=3, checkpoints={"every": 1}, update={"kl": 0.01})
    alone = train(recipe_from_dict(plain), tmp_path / "alone").path
    begun = tmp_path / "begun"
    train(recipe_from_dict(plain | {"steps": 1}), begun)
    onwards = train(recipe_from_dict(several(plain)), begun, resume=True).path
    assert_close(onwards, alone, steps=3)


Places = dict[str, Place]
Starts = list[dict[str, list[int]]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> tuple[Places, Starts]:
    """Where rank 1 of each agent is, and the processes of all ranks after each start."""
    places: Places = {}
    starts: Starts = []
    start = RayFleet.start

    def noted(self: RayFleet, checkpoint: Path | None) -> RayFleet:
        fleet = start(self, checkpoint)
        found = fleet.rank_places.items()
        places.update({name: ranks[1] for name, ranks in found})
        starts.append({name: [rank.process for rank in ranks] for name, ranks in found})
        return fleet

    monkeypatch.setattr(RayFleet, "start", noted)
    return places, starts


@pytest.mark.slow
@pytest.mark.usefixtures("started_ray")
@pytest.mark.parametrize(
    ("strike", "who", "why"),
    [
        (kill, "agent kim, rank 1 (process ", "its process ended at once"),
        # The other waits for it in a collective, and nobody can tell which of them hangs.
        (stop, "agent kim (process ", "no answer within 60 s, and it was ended"),
    ],
)
def test_an_agent_that_lost_a_rank_is_restarted(
    tiny_recipe: MakeRecipe,
    tmp_path: Path,
    started: tuple[Places, Starts],
    strike: Callable[[int], None],
    who: str,
    why: str,
) -> None:
    raw = tiny_recipe(**WIDE, steps=2, checkpoints={"every": 1})
    alone = train(recipe_from_dict(raw), tmp_path / "alone").path
    places, starts = started
    striker = Attacker(places, {("learn", 1): ("kim", strike)})
    run = train(recipe_from_dict(several(raw, seconds=60)), tmp_path / "ray", striker).path
    (lost,) = [text for text in striker.notes if "was lost in" in text]
    assert lost.startswith(who)
    # The checkpoint of the step before may still be under way, and then notices it first.
    assert f"was lost in learn: {why}" in lost or f"was lost in checkpoint: {why}" in lost
    before, after = starts
    assert set(before["kim"]).isdisjoint(after["kim"]), "both ranks are new"
    assert before["lee"] == after["lee"], "nothing was wrong with these"
    assert_close(run, alone, steps=2)


@pytest.mark.slow
@pytest.mark.usefixtures("started_ray")
def test_the_others_go_on_without_the_ranks_of_a_lost_agent_and_take_them_back(
    tiny_recipe: MakeRecipe, tmp_path: Path, started: tuple[Places, Starts]
) -> None:
    raw = several(tiny_recipe(**WIDE, steps=40, checkpoints={"every": 1}))
    raw["fleet"]["on_peer_failure"] = "continue"
    patient = Patient(started[0], {("learn", 1): ("kim", kill)})
    run = train(recipe_from_dict(raw), tmp_path, patient).path
    (lost,) = [text for text in patient.notes if "was lost in" in text]
    assert lost.startswith("agent kim, rank 1 (process ")
    assert any("agent kim has rejoined" in text for text in patient.notes)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    without = [r["step"] for r in rows if r["agent"] == "lee" and "kim" not in r["sources"]]
    learned = [r["step"] for r in rows if r["agent"] == "kim"]
    assert 0 < len(without) < 38
    assert learned[0] == 0
    assert learned[-1] == 39
    assert (run / "agents" / "kim" / "model.safetensors").is_file()


@pytest.mark.parametrize(
    ("changes", "spec", "words"),
    [
        ({"fleet": "local"}, {}, "needs fleet: ray"),
        ({"fleet": {"type": "ray", "in_turns": True}}, {}, "drop fleet.in_turns"),
        ({}, {"lora": {"rank": 4}}, r"drop agents\.kim\.lora"),
        ({}, {"sampler": "vllm"}, r"set agents\.kim\.sampler: hf"),
        ({"update": {"alignment_every": 1}}, {}, "drop update.alignment_every"),
    ],
)
def test_what_does_not_go_with_several_ranks_is_refused(
    tiny_recipe: MakeRecipe, changes: dict[str, Any], spec: dict[str, Any], words: str
) -> None:
    raw = several(tiny_recipe()) | changes
    raw["agents"]["kim"] |= spec
    with pytest.raises(UserError, match=f"agents.kim.ranks: .*{words}"):
        recipe_from_dict(raw)

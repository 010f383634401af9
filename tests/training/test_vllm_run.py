"""Runs whose responses an engine draws: vLLM where it is installed, and a stand-in."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from hacrl.agents.sampling.engines.hosted import HostedEngine
from hacrl.agents.sampling.probe import EXACT
from hacrl.config.schema import Recipe
from hacrl.errors import UserError
from hacrl.training.train import train
from tests.agents.sampling.stand_in import KINDS, StandInEngine, serving

Make = Callable[..., dict[str, Any]]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    with serving(request.param):
        yield request.param


@pytest.fixture
def raw(tiny_recipe: Make, llama_folder: Path, tmp_path: Path) -> dict[str, Any]:
    """Kim draws with an engine, Lee with Hugging Face. Kim's heads have a size that vLLM serves."""
    folder = tmp_path / "kim"
    tokenizer = AutoTokenizer.from_pretrained(llama_folder)
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=len(tokenizer),
                hidden_size=32,
                intermediate_size=64,
                num_hidden_layers=2,
                num_attention_heads=2,
                num_key_value_heads=1,
                head_dim=32,
                max_position_embeddings=128,
                eos_token_id=tokenizer.eos_token_id,
                bos_token_id=None,
            )
        )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    recipe = tiny_recipe(steps=3)
    recipe["agents"]["kim"] = {
        "model": str(folder),
        "sampler": {"type": "vllm", "enforce_eager": True, "cpu_cache": 0.25, "sleep": False},
    }
    return recipe


def metrics(run: Path) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def without_times(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Nor the probe gap: a resumed run probes with the first prompt that it asks itself."""
    left_out = ("seconds", "sync_seconds", "probe_gap")
    return [{k: v for k, v in row.items() if k not in left_out} for row in rows]


@pytest.mark.usefixtures("kind")
def test_a_run_learns_from_exact_logprobs_and_goes_on_bit_for_bit(
    raw: dict[str, Any], tmp_path: Path
) -> None:
    whole = train(Recipe.model_validate(raw), tmp_path / "whole")
    rows = metrics(whole.path)
    kim = [row for row in rows if row["agent"] == "kim"]
    assert [row["step"] for row in kim] == [0, 1, 2]
    assert [row["sync_seconds"] is None for row in kim] == [True, False, False]
    assert all(row["probe_gap"] < EXACT for row in kim)  # there is one; it may be 0
    assert all(row["logprob_gap"] < EXACT for row in kim if row["logprob_gap"] is not None)
    assert any(row["logprob_gap"] is not None for row in kim)
    assert kim[0]["policy_version"] < kim[1]["policy_version"] < kim[2]["policy_version"]
    assert all(row["probe_gap"] is None for row in rows if row["agent"] == "lee")
    for row in rows:
        drawn = pq.read_table(
            whole.path / "rollouts" / f"step-{row['step']:06d}.parquet"
        ).to_pylist()
        own = {one["policy_version"] for one in drawn if one["agent"] == row["agent"]}
        assert own == {row["policy_version"]}, "every rollout says which weights drew it"

    first = copy.deepcopy(raw) | {"steps": 1}
    train(Recipe.model_validate(first), tmp_path / "parts")
    resumed = train(Recipe.model_validate(raw), tmp_path / "parts", resume=True)
    assert without_times(metrics(resumed.path)) == without_times(rows)
    for ours, theirs in zip(
        sorted(whole.path.glob("rollouts/*.parquet")),
        sorted(resumed.path.glob("rollouts/*.parquet")),
        strict=True,
    ):
        assert pq.read_table(ours).equals(pq.read_table(theirs))


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_a_run_stops_by_name_when_its_engine_gets_no_weights(
    kind: str, raw: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = StandInEngine if kind == "stand-in" else HostedEngine
    monkeypatch.setattr(engine, "load", lambda engine, weights: None)
    raw["agents"]["kim"]["learning_rate"] = 0.1
    with pytest.raises(UserError, match=r"agent kim: its \S+ engine and its learner disagree"):
        train(Recipe.model_validate(raw), tmp_path)
    assert len(metrics(tmp_path / "tiny")) < 2 * raw["steps"]
    assert (tmp_path / "tiny" / "agents" / "kim" / "config.json").is_file(), "nothing is lost"


def test_a_run_ends_with_one_line_when_its_engine_dies(
    raw: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = StandInEngine.load

    def load_once(engine: StandInEngine, weights: Any) -> None:
        if "load" in engine.calls:
            engine.failure = "it was struck by lightning"
        load(engine, weights)

    monkeypatch.setattr(StandInEngine, "load", load_once)
    with serving("stand-in"), pytest.raises(UserError) as caught:
        train(Recipe.model_validate(raw), tmp_path)
    assert str(caught.value) == "agent kim: stand-in engine: it was struck by lightning"
    assert [row["step"] for row in metrics(tmp_path / "tiny")] == [0, 0, 1, 1]

"""What a rehearsal counts, against closed forms."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from hacrl.config import recipe_from_dict
from hacrl.planning.fakes import fake_tensors
from hacrl.planning.rehearsal import Need, rehearse

HIDDEN, LAYERS, HEADS, WIDTH = 64, 4, 2, 16
CONFIG = LlamaConfig(
    vocab_size=96,
    hidden_size=HIDDEN,
    intermediate_size=128,
    num_hidden_layers=LAYERS,
    num_attention_heads=4,
    num_key_value_heads=HEADS,
    head_dim=WIDTH,
    max_position_embeddings=4096,
    tie_word_embeddings=True,
)
SMALL = 4096
"""Bytes of what is no weight: the table of rotary frequencies, AdamW's step counters, masks."""


def need(
    device_type: str = "cpu", ranks: int = 1, agent: dict[str, Any] | None = None, **changes: Any
) -> Need:
    raw = {
        "name": "x",
        "steps": 1,
        "prompts_per_step": 4,
        "fleet": "ray",
        "agents": {"a": {"model": "a/b", "ranks": ranks, **(agent or {})}},
        "tasks": {"t": {"source": {"type": "jsonl", "path": "x"}, "verifier": {"type": "exact"}}},
        "sampling": {"group_size": 4, "max_new_tokens": 64},
        **changes,
    }
    return rehearse("a", recipe_from_dict(raw), CONFIG, 32, device_type)


@pytest.fixture(scope="module")
def weights() -> int:
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(CONFIG)
    return 4 * sum(parameter.numel() for parameter in model.parameters())


def test_weights_and_moments_have_closed_forms(weights: int) -> None:
    plain = need()
    assert plain.weights == weights
    assert weights <= plain.peaks["load"] <= weights + SMALL
    assert 3 * weights <= plain.resident <= 3 * weights + SMALL
    assert plain.peaks["learn"] > 4 * weights, "gradients too"


def test_a_reference_adds_its_weights(weights: int) -> None:
    plain, with_reference = need(), need(update={"kl": 0.1})
    assert with_reference.peaks["load"] - plain.peaks["load"] >= weights
    assert abs(with_reference.resident - plain.resident - weights) <= SMALL


def test_ranks_hold_their_share(weights: int) -> None:
    shared = need(ranks=2)
    # Every dimension here is even, so nothing is padded.
    assert shared.weights == weights // 2
    assert 3 * weights // 2 <= shared.resident <= 3 * weights // 2 + SMALL
    assert shared.peaks["load"] >= weights, "a CPU's ranks load the whole model first"
    on_gpu = need("cuda", ranks=2)
    assert weights // 2 <= on_gpu.peaks["load"] <= weights // 2 + SMALL
    assert on_gpu.host >= weights


def test_an_adapter_is_all_that_is_trained(weights: int) -> None:
    rank = 4
    adapted = need(agent={"lora": {"rank": rank}})
    per_layer = [
        (HIDDEN, 4 * WIDTH),
        *[(HIDDEN, HEADS * WIDTH)] * 2,
        (4 * WIDTH, HIDDEN),
        *[(HIDDEN, 128)] * 2,
        (128, HIDDEN),
    ]
    adapter = 4 * LAYERS * rank * sum(i + o for i, o in per_layer)
    assert adapted.weights == weights + adapter
    assert 0 <= adapted.resident - weights - 3 * adapter <= SMALL


def test_keys_and_values_grow_with_rows_and_positions() -> None:
    few, many, long = (
        need(sampling={"group_size": size, "max_new_tokens": tokens}).peaks["sample"]
        for size, tokens in ((4, 512), (8, 512), (8, 1024))
    )
    position = 2 * 4 * LAYERS * HEADS * WIDTH  # keys and values in single precision
    assert many - few >= 16 * (32 + 511) * position
    assert long - many >= 32 * 512 * position
    assert long - many <= 1.5 * 32 * 512 * position, "a layer's is there twice while it grows"


def test_activations_follow_what_is_computed_at_once() -> None:
    long = {"group_size": 4, "max_new_tokens": 480}
    peaks = [
        need(sampling=long, update=update).peaks["learn"]
        for update in (
            {"micro_batch_tokens": 2048},
            {"micro_batch_tokens": 512},
            {"micro_batch_tokens": 512, "gradient_checkpointing": True},
        )
    ]
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[0] > 2 * peaks[1]
    assert peaks[1] > 1.3 * peaks[2]


def test_tensors_of_different_devices_do_not_mix() -> None:
    with fake_tensors(1), pytest.raises(RuntimeError, match="device"):
        _ = torch.ones(2, device="cuda") + torch.ones(2)


def test_freed_tensors_count_no_more() -> None:
    with fake_tensors(1) as (live, _):
        kept = torch.zeros(256)
        assert live.now == 1024
        kept.view(16, 16)
        assert live.now == 1024, "a view has no memory of its own"
        for _ in range(3):
            kept + 1.0
        assert (live.now, live.peak) == (1024, 2048)
        kept.untyped_storage().resize_(0)
        assert live.now == 0

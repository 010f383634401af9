"""Sampling with the policy's own model, at its first position and at its last."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import Cache

from hacrl.agents.policy.policy import Policy
from hacrl.agents.policy.prompt_pass import PromptPass
from hacrl.agents.policy.sharding import gathered, resharded
from hacrl.agents.sampling.hugging_face import draw_tokens

__all__ = ["rehearse_drawing"]


def rehearse_drawing(
    policy: Policy,
    *,
    prompt_tokens: int,
    new_tokens: int,
    rows: int,
    group_size: int,
    gather: bool,
) -> None:
    """Draw the first token of one batch and the last, when keys and values are longest.

    Args:
        rows: of the batch, of all ranks.
        gather: as in `sample`.
    """
    own = max(1, -(-rows // policy.share.size))
    prompts = -(-own // group_size)
    policy.activate()
    weights = gathered(policy.model) if gather else resharded(policy.model)
    with weights, policy.without_gradients():
        start = PromptPass(policy, [[0] * prompt_tokens] * prompts).start(
            [row // group_size for row in range(own)]
        )
        hidden_BH, cache, mask_BL, length_B = start
        del start
        token_B = _draw(policy, hidden_BH)
        del hidden_BH
        if new_tokens == 1:
            return
        length = prompt_tokens + new_tokens - 2
        _lengthen(cache, length)
        hidden_BH = policy.hidden_states(
            token_B[:, None],
            mask_BL.new_ones((own, length + 1)),
            position_ids=(length_B + new_tokens - 2)[:, None],
            cache=cache,
        )[:, -1]
        _draw(policy, hidden_BH)


def _draw(policy: Policy, hidden_BH: Tensor) -> Tensor:
    logprobs_BV = (policy.logits(hidden_BH) / 1.0).log_softmax(dim=-1)
    return draw_tokens(logprobs_BV, torch.zeros(len(hidden_BH), dtype=torch.float64))


def _lengthen(cache: Cache, length: int) -> None:
    """Let keys and values be those of so many positions, or of a window's."""
    layers: list[Any] = cache.layers
    for layer in layers:
        if not isinstance(getattr(layer, "keys", None), Tensor):
            continue  # a state that does not grow
        window = getattr(layer, "sliding_window", None)
        kept = length if window is None else min(length, window - 1)
        rows, heads, _, width = layer.keys.shape
        layer.keys = layer.keys.new_empty((rows, heads, kept, width))
        layer.values = layer.values.new_empty((rows, heads, kept, layer.values.shape[-1]))
        if window is not None:
            layer.cumulative_length = length

"""Attention of grouped queries on a CPU without repeating keys and values.

Measured with the demo's models (`benchmarks/pays.py`): 8 % off learning and 10 % off sampling.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

__all__ = ["group_queries"]

_NAME = "sdpa_grouped"


def group_queries(model: PreTrainedModel) -> None:
    """Let a model on a CPU attend by torch's grouped kernel where it would repeat first.

    The library repeats keys and values for every query head whenever there is a mask, since CUDA's
    kernels want it; torch's CPU kernel does not. Models with attention of their own are left alone.
    """
    if model.device.type == "cpu" and model.config._attn_implementation == "sdpa":
        AttentionInterface.register(_NAME, _attend)
        AttentionMaskInterface.register(_NAME, sdpa_mask)
        model.set_attn_implementation(_NAME)


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Query (rows, heads, positions, width), key and value with a divisor of the heads."""
    if attention_mask is None or query.shape[1] == key.shape[1] or kwargs.get("position_bias"):
        done: tuple[Tensor, None] = sdpa_attention_forward(
            module,
            query,
            key,
            value,
            attention_mask,
            dropout=dropout,
            scaling=scaling,
            is_causal=is_causal,
            **kwargs,
        )
        return done
    attended = functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=attention_mask,
        dropout_p=dropout,
        scale=scaling,
        enable_gqa=True,
    )
    return attended.transpose(1, 2).contiguous(), None

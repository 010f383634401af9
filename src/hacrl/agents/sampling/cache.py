"""A key-value cache that is written in place."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import DynamicLayer

__all__ = ["write_in_place"]

_ROOM = 32
"""Positions, at least, that a full layer makes room for."""


class _RoomyLayer(DynamicLayer):
    """Keeps room for further positions, where the library's layer copies everything for each."""

    def __init__(self, filled: DynamicLayer) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        assert filled.keys is not None
        assert filled.values is not None
        self.lazy_initialization(filled.keys, filled.values)
        self.keys, self.values = filled.keys, filled.values
        self._room: tuple[Tensor, Tensor] | None = None

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append keys and values (rows, heads, positions, width); return all there are."""
        assert self.keys is not None
        assert self.values is not None
        old = self.keys.shape[2]
        new = old + key_states.shape[2]
        if self._room is None or self._room[0].shape[2] < new:
            capacity = new + max(_ROOM, new // 2)
            self._room = (_roomy(self.keys, capacity), _roomy(self.values, capacity))
        keys, values = self._room
        keys[:, :, old:new] = key_states
        values[:, :, old:new] = value_states
        self.keys, self.values = keys[:, :, :new], values[:, :, :new]
        return self.keys, self.values

    def reorder_cache(self, beam_idx: torch.LongTensor) -> None:
        """Keep the rows of these indices, in their order."""
        if self._room is None:
            super().reorder_cache(beam_idx)
            return
        length = self.get_seq_length()
        keys, values = (tensor.index_select(0, beam_idx) for tensor in self._room)
        self._room = (keys, values)
        self.keys, self.values = keys[:, :, :length], values[:, :, :length]


def write_in_place(cache: Cache) -> None:
    """Let the plain layers of a filled cache append without copying. Not for gradients."""
    cache.layers = [
        _RoomyLayer(layer) if type(layer) is DynamicLayer else layer for layer in cache.layers
    ]


def _roomy(tensor: Tensor, capacity: int) -> Tensor:
    rows, heads, length, width = tensor.shape
    room = torch.empty((rows, heads, capacity, width), dtype=tensor.dtype, device=tensor.device)
    room[:, :, :length] = tensor
    return room

"""Where an agent's tensors are: on its device while it works, in host memory while it rests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from accelerate.utils.memory import clear_device_cache  # type: ignore[import-untyped]
from torch import nn

__all__ = ["Residence"]

_HOST = torch.device("cpu")


class Residence:
    """Moves models and an optimizer's state between a device and host memory.

    Parameters stay the same objects, so that the optimizer keeps knowing them. Agents that share
    a model through adapters share its moves. What is read beside the moves, such as by a
    checkpoint, is the same in either place.

    Args:
        models: all that take part in learning; the first alone samples.
        optimizer: its state moves along, as far as there is any; None for what does not learn.
        device: where the work is done; None: nothing ever moves.
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        optimizer: torch.optim.Optimizer | None,
        device: torch.device | None,
    ) -> None:
        self._models = models
        self._optimizer = optimizer
        self._device = device
        if device is not None:
            self._rest()

    @contextmanager
    def awake(self, *, learning: bool) -> Iterator[None]:
        """The block works on the device.

        Args:
            learning: whether with all models and the optimizer, or with the first model alone.
        """
        if self._device is None:
            yield
            return
        self._move(self._device, learning=learning)
        try:
            yield
        finally:
            self._rest()

    def _rest(self) -> None:
        self._move(_HOST, learning=True)
        clear_device_cache()  # so that the next agent finds it free

    def _move(self, device: torch.device, *, learning: bool) -> None:
        for model in self._models if learning else self._models[:1]:
            model.to(device)
        for state in self._optimizer.state.values() if self._optimizer and learning else ():
            state.update({key: value.to(device) for key, value in state.items()})

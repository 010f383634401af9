"""An agent over several ranks: who does which rows, and a model whose weights are spread over them.

Every rank runs the same program on the same records. It samples and learns its share of the rows,
and what the shares gave is put together before anybody goes on, so that all ranks hold the same
results. Weights, gradients and optimizer are sharded by torch's FSDP2, for which all ranks make the
same passes at the same time; an agent of one rank has none of this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from torch import Tensor, distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor
from transformers import PreTrainedModel

__all__ = [
    "ALONE",
    "Share",
    "gathered",
    "placed_like",
    "plain_class",
    "resharded",
    "shard",
    "through_root",
    "whole",
    "whole_on_host",
    "whole_state",
]

T = TypeVar("T")

_CALL = "_call_as_root"


@dataclass(frozen=True, slots=True)
class Share:
    """Which of an agent's ranks this process is. Beyond one rank, torch's process group is up."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this rank writes the files."""
        return self.rank == 0

    def of(self, items: Sequence[T]) -> Sequence[T]:
        """This rank's consecutive part of some items; it may be empty."""
        bounds = (self.rank * len(items), (self.rank + 1) * len(items))
        return items[bounds[0] // self.size : bounds[1] // self.size]

    def gather(self, own: T) -> list[T]:
        """What every rank has, in their order. All ranks call it together."""
        if self.size == 1:
            return [own]
        gathered: list[Any] = [None] * self.size
        distributed.all_gather_object(gathered, own)
        return gathered

    def any(self, own: bool) -> bool:
        """Whether something holds on any rank. All ranks call it together."""
        if self.size == 1:
            return own
        flag = torch.tensor(int(own))
        distributed.all_reduce(flag, distributed.ReduceOp.MAX)
        return bool(flag)

    def write(self, write: Callable[[], object]) -> None:
        """Let the first rank write something. All ranks call it together.

        Raises:
            OSError, SafetensorError: it could not; on every rank, so that they stay in step.
        """
        error: OSError | SafetensorError | None = None
        if self.leads:
            try:
                write()
            except (OSError, SafetensorError) as failed:
                error = failed
        if (failure := self.gather(error)[0]) is not None:
            raise failure


ALONE = Share()
"""An agent of one rank."""


def shard(model: PreTrainedModel, size: int, device: torch.device) -> None:
    """Spread a model's weights over all ranks, layer by layer, in place.

    A layer is whole on a rank while it computes. What is no layer (embeddings, output) stays whole
    until `resharded` or a backward pass ends.

    Args:
        model: in host memory, the same on every rank.
        size: number of ranks.
        device: of this rank, where its part is to be.
    """
    if device.type != "cpu" and model.config._attn_implementation == "sdpa_grouped":
        model.set_attn_implementation("sdpa")  # the other is for CPUs
    mesh = init_device_mesh(device.type, (size,))
    layers = set(model._no_split_modules or ())
    for module in list(model.modules()):
        if type(module).__name__ in layers:
            fully_shard(module, mesh=mesh)
    fully_shard(model, mesh=mesh)
    for part in _sharded(model):
        # The loss of a row is divided by the rows of all ranks already: the gradient is their sum.
        part.set_gradient_divide_factor(1.0)
        part.set_force_sum_reduction_for_comms(True)
    setattr(model, _CALL, lambda work: work())
    register_fsdp_forward_method(model, _CALL)


def through_root(model: PreTrainedModel, work: Callable[[], Tensor]) -> Tensor:
    """Compute with submodules of a model; a sharded one gathers their weights first."""
    done: Tensor = getattr(model, _CALL, _call)(work)
    return done


@contextmanager
def gathered(model: PreTrainedModel) -> Iterator[None]:
    """In the block every rank has all weights, for passes without gradients.

    Does nothing to a model that is not sharded.
    """
    modules = list(_sharded(model))
    for module in modules:
        module.set_reshard_after_forward(False, recurse=False)
        module.unshard()
    try:
        yield
    finally:
        for module in modules:
            module.set_reshard_after_forward(id(module) != id(model), recurse=False)
            module.reshard()


@contextmanager
def resharded(model: PreTrainedModel) -> Iterator[None]:
    """After the block no rank holds weights as they were in it; they may be about to change."""
    yield
    for module in _sharded(model):
        module.reshard()


def whole(tensor: Tensor) -> Tensor:
    """A tensor with the parts of all ranks. All ranks call it together."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def placed_like(parameter: Tensor, value: Tensor) -> Tensor:
    """A whole value as the parameter is spread, on its device. Nothing is sent."""
    value = value.to(parameter.device)
    if not isinstance(parameter, DTensor) or not value.ndim:
        return value
    return distribute_tensor(value, parameter.device_mesh, parameter.placements, src_data_rank=None)


def whole_on_host(tensors: Mapping[str, Tensor], *, keep: bool) -> dict[str, Tensor]:
    """Sharded tensors whole and in host memory, others as they are. All ranks call it together.

    Args:
        keep: whether this rank wants them; for another the result is empty. They are gathered one
            by one, since no device need have room for all.
    """
    on_host = {}
    for name, tensor in tensors.items():
        value = whole(tensor)
        if keep:
            on_host[name] = value.cpu() if isinstance(tensor, DTensor) else value
    return on_host


def whole_state(model: PreTrainedModel, *, keep: bool) -> dict[str, Tensor]:
    """Weights by name, tied ones once. See `whole_on_host`."""
    persistent = model.state_dict().keys()
    state = {name: parameter.detach() for name, parameter in model.named_parameters()}
    state |= {name: buffer for name, buffer in model.named_buffers() if name in persistent}
    return whole_on_host(state, keep=keep)


def plain_class(model: PreTrainedModel) -> type[PreTrainedModel]:
    """The class that a model had before it was sharded."""
    model_class = type(model)
    return model_class.__mro__[2] if issubclass(model_class, FSDPModule) else model_class


def _call(work: Callable[[], Tensor]) -> Tensor:
    return work()


def _sharded(model: PreTrainedModel) -> Iterator[FSDPModule]:
    return (module for module in model.modules() if isinstance(module, FSDPModule))

"""A machine of fake tensors, and one process in place of all ranks of an agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar
from unittest.mock import patch

from torch import Tensor, distributed, nn
from torch._subclasses import FakeTensor, FakeTensorMode, fake_tensor
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from hacrl.agents.policy import sharding
from hacrl.agents.policy.sharding import ALONE, Share
from hacrl.planning.tracking import LiveBytes, ones

__all__ = ["fake_tensors"]

T = TypeVar("T")

_KNOWN = 1 << 20
"""Entries up to which a tensor made of numbers of the host keeps them; torch's own limit is 1."""


class _FirstOf(Share):
    """The first rank of several, of which the others are taken to have what it has."""

    def gather(self, own: T) -> list[T]:
        return [own] * self.size

    def any(self, own: bool) -> bool:
        return own

    def write(self, write: Callable[[], object]) -> None:
        write()


@contextmanager
def fake_tensors(ranks: int) -> Iterator[tuple[LiveBytes, Share]]:
    """In the block tensors have shapes and no memory, which is counted; collectives send nothing.

    Args:
        ranks: of torch's process group, of which this process is the first.
    """
    with ExitStack() as stack:
        share = ALONE
        if ranks > 1:
            from torch.testing._internal.distributed.fake_pg import FakeStore

            distributed.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
            stack.callback(distributed.destroy_process_group)
            stack.enter_context(patch.object(sharding, "init_device_mesh", _mesh))
            share = _FirstOf(0, ranks)
        stack.enter_context(patch.object(FakeTensor, "__deepcopy__", _copy, create=True))
        stack.enter_context(patch.object(FakeTensor, "tolist", ones))
        stack.enter_context(patch.object(fake_tensor, "CONSTANT_NUMEL_LIMIT", _KNOWN))
        stack.enter_context(FakeTensorMode())
        yield stack.enter_context(LiveBytes()), share


def _mesh(*args: Any, **kwargs: Any) -> DeviceMesh:
    """A mesh looks up this process's place among the ranks, for which it needs real numbers."""
    with unset_fake_temporarily():
        return init_device_mesh(*args, **kwargs)


def _copy(tensor: FakeTensor, memo: dict[int, Any]) -> Tensor:
    """A copy by the tensor's own mode. torch's own way would copy the mode, too."""
    if id(tensor) not in memo:
        copied = tensor.detach().clone()
        is_parameter = isinstance(tensor, nn.Parameter)
        memo[id(tensor)] = (
            nn.Parameter(copied, tensor.requires_grad)
            if is_parameter
            else copied.requires_grad_(tensor.requires_grad)
        )
    result: Tensor = memo[id(tensor)]
    return result

"""Bytes of tensors that are alive, counted while a computation runs on fake tensors."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed.tensor import DTensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

__all__ = ["LiveBytes", "ones"]

_OPS = torch.ops.aten


class LiveBytes(TorchDispatchMode):
    """Counts the storages that exist, and answers what a fake tensor has no value for.

    To be entered inside `FakeTensorMode`. What has been made of numbers of the host, such as the
    lengths of rows, keeps them; any other number that is asked for is 1, and a mask is true
    everywhere, so that a computation that looks at its numbers takes its largest shape.

    Attributes:
        now: bytes alive, of all storages that were made in the block.
        peak: the most that was alive at once since `restart`.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = 0
        self.peak = 0
        self._sizes: dict[weakref.ref[torch.UntypedStorage], int] = {}

    def restart(self) -> None:
        """Begin another peak from what is alive now."""
        self.peak = self.now

    def __enter__(self) -> LiveBytes:
        # FSDP frees gathered weights by a resize of their storage, which is no operator.
        resize = torch.UntypedStorage.resize_

        def resize_and_count(storage: torch.UntypedStorage, size: int) -> None:
            resize(storage, size)
            self._count(storage)

        self._resize = patch.object(torch.UntypedStorage, "resize_", resize_and_count)
        self._resize.start()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._resize.stop()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if DTensor in types:
            return NotImplemented  # what it does with its local part comes by again
        answer = _ANSWERS.get(func)
        if answer is not None and isinstance(args[0], FakeTensor) and args[0].constant is None:
            result = answer(*args)
        elif func is _OPS.index.Tensor or func is _OPS.index_put.default:
            result = func(args[0], _places(args[1]), *args[2:], **(kwargs or {}))
        else:
            result = func(*args, **(kwargs or {}))
        for value in tree_iter(result):
            if isinstance(value, FakeTensor):
                self._count(value.untyped_storage())
        return result

    def _count(self, storage: torch.UntypedStorage) -> None:
        reference = weakref.ref(storage, self._forget)
        size = storage.nbytes()
        self.now += size - self._sizes.get(reference, 0)
        self._sizes[reference] = size
        self.peak = max(self.peak, self.now)

    def _forget(self, reference: weakref.ref[torch.UntypedStorage]) -> None:
        self.now -= self._sizes.pop(reference)


def ones(tensor: Tensor) -> Any:
    """What `tolist` gives of a fake tensor: ones, unless its numbers are known."""
    if isinstance(tensor, FakeTensor) and tensor.constant is not None:
        with no_dispatch():
            return tensor.constant.tolist()
    kind = bool if tensor.dtype is torch.bool else float if tensor.is_floating_point() else int
    values: Any = kind(1)
    for size in reversed(tensor.shape):
        values = [values] * size
    return values


def _nonzero(mask: Tensor) -> Tensor:
    return mask.new_zeros((mask.numel(), mask.dim()), dtype=torch.long)


def _places(indices: list[Tensor | None]) -> list[Tensor | None]:
    """Indices in which a mask has become the positions that it selects."""
    positions: list[Tensor | None] = []
    for index in indices:
        if index is not None and index.dtype is torch.bool:
            count = index.numel()
            if isinstance(index, FakeTensor) and index.constant is not None:
                with no_dispatch():
                    count = int(index.constant.count_nonzero())
            positions += [index.new_zeros(count, dtype=torch.long)] * index.dim()
        else:
            positions.append(index)
    return positions


_ANSWERS: Mapping[Any, Callable[..., Any]] = {
    _OPS._local_scalar_dense.default: ones,
    _OPS.nonzero.default: _nonzero,
}

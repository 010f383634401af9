"""How far two ways to the same number may be apart, whatever processor computes them.

A sum of n products depends on the order of its terms, and that on the width of a processor's
vectors, on its threads, and on how rows are batched. Its error is at most n·ε·Σ|aᵢbᵢ| (Higham,
*Accuracy and Stability of Numerical Algorithms*, §3.1), so what is allowed here is always

    ε(dtype) × number of terms × magnitude

where terms are counted along the longest way from input to output. The bound is a worst case: what
is seen is one or two orders of magnitude below it, and a mistake as many above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

__all__ = ["assert_close", "assert_close_gradients", "rounding", "terms"]


def rounding(terms: int, magnitude: float = 1.0, dtype: torch.dtype = torch.float32) -> float:
    """The largest difference that rounding explains between two sums of so many terms.

    Args:
        terms: products that are summed, one after another, on the way to the result.
        magnitude: largest absolute value of what is summed.
        dtype: in which it is summed.
    """
    return torch.finfo(dtype).eps * terms * magnitude


def terms(model: nn.Module, tokens: int) -> int:
    """Terms between the ids and the log-probabilities of a language model, and as many back.

    Args:
        model: a model of the library, whose linear layers are counted by their inputs.
        tokens: length of the longest row, over which attention and its softmax sum.
    """
    layers: int = model.config.num_hidden_layers  # type: ignore[union-attr, assignment]
    inputs = sum(part.in_features for part in model.modules() if isinstance(part, nn.Linear))
    return inputs + 2 * tokens * layers


def assert_close(
    actual: Tensor | Sequence[float],
    expected: Tensor | Sequence[float],
    terms: int,
    *,
    magnitude: float | None = None,
    dtype: torch.dtype = torch.float32,
    equal_nan: bool = False,
) -> None:
    """No element is farther off than rounding explains.

    Args:
        actual: what the code gives.
        expected: the same, computed another way.
        terms: see `rounding`.
        magnitude: of what is summed; by default the largest finite element that is expected, and 1
            at least.
        dtype: in which both were computed, whatever they are kept in.
        equal_nan: whether an unknown value equals another one.
    """
    ours, theirs = (torch.as_tensor(x).detach().double() for x in (actual, expected))
    if magnitude is None:
        magnitude = max([1.0, *theirs[theirs.isfinite()].abs().flatten().tolist()])
    allowed = rounding(terms, magnitude, dtype)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=allowed, equal_nan=equal_nan)


def assert_close_gradients(
    actual: Iterable[Tensor], expected: Iterable[Tensor], terms: int
) -> None:
    """Gradients of one loss by several parameters: the largest element of all is their magnitude.

    A small gradient is what is left of large ones that came back through the same layers.
    """
    pairs = list(zip(actual, expected, strict=True))
    largest = max(float(theirs.abs().max()) for _, theirs in pairs)
    assert largest > 0, "nothing to compare"
    for ours, theirs in pairs:
        assert_close(ours, theirs, 2 * terms, magnitude=largest)

"""Merged norms are the library's, in fewer passes."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

from hacrl.agents.policy.norms import _Norm, merge_norms
from hacrl.agents.policy.policy import Policy
from tests.tolerances import assert_close, terms

pytestmark = pytest.mark.numerics


def _gradients(norm: nn.Module, x: Tensor, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    x = x.clone().requires_grad_()
    y: Tensor = norm(x)
    assert isinstance(norm.weight, Tensor)
    dx, dw = torch.autograd.grad(y, (x, norm.weight), g)
    return y.detach(), dx, dw


def _is_merged(norm: nn.Module) -> bool:
    return "forward" in vars(norm)


@pytest.mark.parametrize("make", [LlamaRMSNorm, Qwen3RMSNorm])
@pytest.mark.parametrize("shape", [(5, 8), (3, 4, 16), (2, 3, 4, 32), (1, 1)])
def test_a_merged_norm_gives_the_same_values_and_gradients(
    make: Callable[[int], nn.Module], shape: tuple[int, ...]
) -> None:
    random = torch.Generator().manual_seed(0)
    x, g = (torch.randn(shape, generator=random) for _ in range(2))
    plain = make(shape[-1])
    plain.weight.data = torch.randn(shape[-1], generator=random)
    merged = copy.deepcopy(plain)
    merge_norms(merged)
    assert _is_merged(merged)
    assert not _is_merged(plain)
    for ours, theirs in zip(_gradients(merged, x, g), _gradients(plain, x, g), strict=True):
        assert_close(ours, theirs, 4 * x.numel())


def test_its_gradient_is_that_of_finite_differences() -> None:
    """In double precision, where differences tell; the norm itself is for single precision."""
    random = torch.Generator().manual_seed(1)
    x = torch.randn((3, 6), generator=random, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(6, generator=random, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: _Norm.apply(a, b, 1e-3), (x, weight))


def test_a_row_of_zeros_is_no_trouble() -> None:
    norm = LlamaRMSNorm(4)
    merge_norms(norm)
    y, dx, dw = _gradients(norm, torch.zeros(2, 4), torch.ones(2, 4))
    assert y.eq(0).all()
    assert dw.eq(0).all()
    assert_close(dx, torch.full((2, 4), 1e-6**-0.5), 4)


def test_norms_of_other_kinds_are_left_alone() -> None:
    class GatedRMSNorm(LlamaRMSNorm):
        def forward(self, hidden_states: Tensor, gate: Tensor | None = None) -> Tensor:
            normed: Tensor = super().forward(hidden_states)
            return normed if gate is None else normed * gate

    half = LlamaRMSNorm(4).to(torch.bfloat16)
    layer = nn.LayerNorm(4)
    for norm in (Gemma3RMSNorm(4), GatedRMSNorm(4), half, layer):
        merge_norms(norm)
        assert not _is_merged(norm), norm


def test_other_precisions_take_the_plain_way() -> None:
    plain = LlamaRMSNorm(4)
    merged = copy.deepcopy(plain)
    merge_norms(merged)
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(2)).to(torch.bfloat16)
    assert torch.equal(merged(x), plain(x))
    assert merged(x).dtype == plain(x).dtype


def test_a_copy_of_a_merged_model_uses_its_own_weights(kim: Policy) -> None:
    merge_norms(kim.model)
    norms = [module for module in kim.model.modules() if _is_merged(module)]
    assert len(norms) == 4 * len(kim.model.base_model.layers) + 1
    ids = torch.tensor([[3, 4, 5]])
    before = kim.model(ids).logits
    other = copy.deepcopy(kim.model)
    with torch.no_grad():
        other.base_model.norm.weight.mul_(2)
    assert_close(kim.model(ids).logits, before, terms(kim.model, 3))
    assert_close(other(ids).logits, 2 * before, terms(kim.model, 3))


def test_frozen_weights_get_no_gradient() -> None:
    norm = LlamaRMSNorm(4)
    merge_norms(norm)
    norm.weight.requires_grad_(requires_grad=False)
    x = torch.ones(2, 4, requires_grad=True)
    norm(x).sum().backward()
    assert norm.weight.grad is None
    assert x.grad is not None

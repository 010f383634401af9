"""One forward pass of a prompt for all of its responses.

The samples of a group have their prompt in common. Its keys and values are computed once and shared
to every response, in sampling and in learning. This is the plain computation in another order:
log-probabilities and gradients are the same up to rounding.

Shape suffixes: P prompts, L padded positions of a prompt, R rows (responses), T padded response
tokens, N response tokens of all rows together, H hidden width.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor
from transformers import Cache, DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from hacrl.agents.policy.logprobs import length_mask, token_logprobs
from hacrl.agents.policy.policy import Policy

__all__ = ["PromptPass", "can_share_prompts"]


def can_share_prompts(policy: Policy) -> bool:
    """Whether what a model remembers of a prompt is keys and values alone."""
    layers = DynamicCache(config=policy.model.config).layers
    return all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers)


class PromptPass:
    """The forward pass of some prompts, padded on the left so that they end together.

    Args:
        policy: whose pass it is. Gradients are kept if they are enabled now.
        prompts: token ids.
    """

    def __init__(self, policy: Policy, prompts: Sequence[Sequence[int]]) -> None:
        width = max(len(ids) for ids in prompts)
        input_ids_PL = torch.tensor([[policy.pad_id] * (width - len(p)) + [*p] for p in prompts])
        self._mask_PL = length_mask(torch.tensor([len(p) for p in prompts]), width).flip(1)
        self._length_P = self._mask_PL.sum(dim=1).to(policy.device)
        self._mask_PL = self._mask_PL.long().to(policy.device)
        self._policy = policy
        self._cache = DynamicCache(config=policy.model.config)
        hidden_PLH = policy.hidden_states(
            input_ids_PL.to(policy.device),
            self._mask_PL,
            position_ids=(self._mask_PL.cumsum(dim=1) - 1).clamp(min=0),
            cache=self._cache,
        )
        self._last_PH = hidden_PLH[:, -1]
        self._computed: list[Tensor] = []
        self._detached: list[Tensor] = []

    def detach(self) -> None:
        """Let responses start from here, each with a graph of its own.

        Their gradients with regard to the prompts add up until `backward` carries them on.
        """
        layers: list[Any] = self._cache.layers
        self._computed = [self._last_PH, *(x for la in layers for x in (la.keys, la.values))]
        self._detached = [x.detach().requires_grad_(x.requires_grad) for x in self._computed]

    def backward(self) -> None:
        """Carry the gradients of all responses so far through the prompts, if there are any."""
        pairs = [
            (x, detached.grad)
            for x, detached in zip(self._computed, self._detached, strict=True)
            if detached.grad is not None
        ]
        if pairs:
            torch.autograd.backward([x for x, _ in pairs], [grad for _, grad in pairs])

    def response_logprobs(
        self, responses: Sequence[Sequence[int]], prompt_of: Sequence[int], temperature: float
    ) -> tuple[Tensor, Tensor]:
        """log π(y_t | prompt, y_<t) at a temperature, and the mask of response tokens, as (R, T).

        Args:
            responses: token ids.
            prompt_of: number of each response's prompt.
        """
        policy, device = self._policy, self._policy.device
        prompt_R = torch.tensor(prompt_of, device=device)
        length_R = torch.tensor([len(ids) for ids in responses])
        width = int(length_R.max())
        ids_RT = torch.tensor([[*r, *[policy.pad_id] * (width - len(r))] for r in responses])
        ids_RT, mask_RT = ids_RT.to(device), length_mask(length_R, width).to(device)
        hidden_RTH = self._detached[0][prompt_R][:, None]
        if width > 1:  # the last token predicts nothing
            rest_RTH = policy.hidden_states(
                ids_RT[:, :-1],
                torch.cat([self._mask_PL[prompt_R], mask_RT[:, :-1].long()], dim=1),
                position_ids=self._length_P[prompt_R, None]
                + torch.arange(width - 1, device=device),
                cache=self._detached_cache(prompt_R),
            )
            hidden_RTH = torch.cat([hidden_RTH, rest_RTH], dim=1)
        logprob_N = token_logprobs(policy, hidden_RTH[mask_RT], ids_RT[mask_RT], temperature)
        empty_RT = torch.zeros(mask_RT.shape, device=device)
        return empty_RT.masked_scatter(mask_RT, logprob_N), mask_RT

    def start(self, prompt_of: Sequence[int]) -> tuple[Tensor, Cache, Tensor, Tensor]:
        """What sampling goes on from; the pass itself is used up.

        Args:
            prompt_of: number of each row's prompt.

        Returns:
            Last hidden states (R, H), cache, attention mask (R, L), prompt lengths (R,).
        """
        prompt_R = torch.tensor(prompt_of, device=self._policy.device)
        self._cache.reorder_cache(cast("torch.LongTensor", prompt_R))
        return (
            self._last_PH[prompt_R],
            self._cache,
            self._mask_PL[prompt_R],
            self._length_P[prompt_R],
        )

    def _detached_cache(self, prompt_R: Tensor) -> Cache:
        cache = copy.copy(self._cache)
        layers: list[Any] = [copy.copy(layer) for layer in self._cache.layers]
        for i, layer in enumerate(layers):
            layer.keys = self._detached[1 + 2 * i].index_select(0, prompt_R)
            layer.values = self._detached[2 + 2 * i].index_select(0, prompt_R)
        cache.layers = layers
        return cache

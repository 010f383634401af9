"""Log-probabilities of given responses under a policy, at response positions only.

Shape suffixes: R rows, L padded positions of prompt + response, T padded response tokens,
N response tokens of all rows together, H hidden width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from hacrl.agents.policy.policy import Policy

__all__ = [
    "LOGITS_AT_ONCE",
    "Sequences",
    "length_mask",
    "pad",
    "response_logprobs",
    "token_logprobs",
]

LOGITS_AT_ONCE = 1 << 25
"""Logits (tokens × vocabulary) that exist at any one time: 128 MiB in single precision."""


@dataclass(frozen=True, slots=True)
class Sequences:
    """Prompts and responses as one padded batch. Masks are made from lengths, never from ids.

    Args:
        input_ids_RL: prompt, response, then padding.
        attention_mask_RL: 1 on prompt and response.
        response_mask_RT: True on response tokens, the end token included.
        start_R: position of each row's first response token.
    """

    input_ids_RL: Tensor
    attention_mask_RL: Tensor
    response_mask_RT: Tensor
    start_R: Tensor


def pad(
    prompts: Sequence[Sequence[int]],
    responses: Sequence[Sequence[int]],
    pad_id: int,
    device: torch.device,
) -> Sequences:
    """Put prompts and responses side by side, padded on the right."""
    starts = [len(p) for p in prompts]
    lengths = [len(p) + len(r) for p, r in zip(prompts, responses, strict=True)]
    width = max(lengths)
    input_ids_RL = torch.tensor(
        [
            [*p, *r, *[pad_id] * (width - len(p) - len(r))]
            for p, r in zip(prompts, responses, strict=True)
        ]
    )
    response_lengths_R = torch.tensor([len(r) for r in responses])
    return Sequences(
        input_ids_RL=input_ids_RL.to(device),
        attention_mask_RL=length_mask(torch.tensor(lengths), width).long().to(device),
        response_mask_RT=length_mask(response_lengths_R, int(response_lengths_R.max())).to(device),
        start_R=torch.tensor(starts).to(device),
    )


def response_logprobs(
    policy: Policy,
    sequences: Sequences,
    temperature: float,
    logits_at_once: int = LOGITS_AT_ONCE,
) -> Tensor:
    """log π(y_t | prompt, y_<t) at a temperature as (R, T), 0 outside the response mask."""
    hidden_RLH = policy.hidden_states(sequences.input_ids_RL, sequences.attention_mask_RL)
    row_N, token_N = sequences.response_mask_RT.nonzero(as_tuple=True)
    position_N = sequences.start_R[row_N] + token_N
    target_N = sequences.input_ids_RL[row_N, position_N]
    hidden_NH = hidden_RLH[row_N, position_N - 1]  # the position before a token predicts it
    logprob_N = token_logprobs(policy, hidden_NH, target_N, temperature, logits_at_once)
    empty_RT = torch.zeros(sequences.response_mask_RT.shape, device=logprob_N.device)
    return empty_RT.index_put((row_N, token_N), logprob_N)


def token_logprobs(
    policy: Policy,
    hidden_NH: Tensor,
    target_N: Tensor,
    temperature: float,
    logits_at_once: int = LOGITS_AT_ONCE,
) -> Tensor:
    """Log-probability of each target given the hidden state that predicts it, (N,).

    Where the logits do not fit they are made chunk by chunk, and again in the backward pass, so
    that the full logits never exist.
    """

    def score(hidden: Tensor, target: Tensor) -> Tensor:
        logits = policy.logits(hidden)
        if temperature != 1.0:
            logits = logits / temperature
        logprob: Tensor = _TargetLogProb.apply(logits, target)  # type: ignore[no-untyped-call]
        return logprob

    size = max(1, logits_at_once // policy.vocab_size)
    if len(target_N) <= size:
        return score(hidden_NH, target_N)
    return torch.cat(
        [
            checkpoint(score, hidden, target, use_reentrant=False)
            for hidden, target in zip(
                torch.split(hidden_NH, size), torch.split(target_N, size), strict=True
            )
        ]
    )


class _TargetLogProb(torch.autograd.Function):
    """log softmax(logits)[target], (N, V), (N,) -> (N,).

    Autograd's own would keep a gradient that is zero but for the targets, and write the gradient of
    the logits beside it: two further tensors of the logits' size.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor) -> Tensor:
        logprobs = logits.log_softmax(dim=-1)
        ctx.save_for_backward(logprobs, target)
        return logprobs.gather(1, target[:, None]).squeeze(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,) = gradients
        logprobs, target = ctx.saved_tensors  # used here alone, so softmax can overwrite them
        scaled = logprobs.exp_().mul_(-gradient[:, None])
        return scaled.scatter_add_(1, target[:, None], gradient[:, None]), None


def length_mask(lengths_R: Tensor, width: int) -> Tensor:
    """True on the first `lengths_R` of `width` positions, (R, width)."""
    return torch.arange(width)[None, :] < lengths_R[:, None]

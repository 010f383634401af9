"""Micro-batches of responses with their log-probabilities under a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from torch import Tensor

from hacrl.agents.learning.batching import micro_batches
from hacrl.agents.policy.logprobs import pad, response_logprobs
from hacrl.agents.policy.policy import Policy
from hacrl.agents.policy.prompt_pass import PromptPass
from hacrl.agents.policy.sharding import ALONE, Share

__all__ = ["Scored", "scored", "scored_whole"]

Scored = tuple[list[int], Tensor, Tensor]
"""Indices of R responses, their log-probabilities and the mask of their tokens, both (R, T)."""


def scored(
    policy: Policy,
    prompts: Sequence[Sequence[int]],
    responses: Sequence[Sequence[int]],
    token_budget: int,
    temperature: float,
    context: Callable[[], AbstractContextManager[object]],
) -> Iterator[Scored]:
    """Score responses micro-batch by micro-batch, each prompt once for all its responses.

    If gradients are wanted, backpropagate each micro-batch before asking for the next: the prompts'
    part of the gradient follows when all of their responses are through.

    Args:
        prompts: token ids of each response's prompt; equal ones are computed once.
        token_budget: see `micro_batches`.
        context: in which forward passes run, for example autocast.
    """
    rows_of: dict[tuple[int, ...], list[int]] = {}
    for row, prompt in enumerate(prompts):
        rows_of.setdefault(tuple(prompt), []).append(row)
    unique = list(rows_of)
    prompt_lengths = {p: len(ids) for p, ids in enumerate(unique)}
    for chunk in micro_batches(range(len(unique)), prompt_lengths, token_budget):
        with context():
            shared = PromptPass(policy, [unique[p] for p in chunk])
        shared.detach()
        width = max(prompt_lengths[p] for p in chunk)
        place = {row: i for i, p in enumerate(chunk) for row in rows_of[unique[p]]}
        lengths = {row: len(responses[row]) for row in place}
        for part in micro_batches(list(place), lengths, token_budget, context=width):
            with context():
                logprob_RT, mask_RT = shared.response_logprobs(
                    [responses[row] for row in part], [place[row] for row in part], temperature
                )
            yield part, logprob_RT, mask_RT
        shared.backward()


def scored_whole(
    policy: Policy,
    prompts: Sequence[Sequence[int]],
    responses: Sequence[Sequence[int]],
    token_budget: int,
    temperature: float,
    context: Callable[[], AbstractContextManager[object]],
    share: Share = ALONE,
) -> Iterator[Scored]:
    """Like `scored`, with a prompt pass of its own for each response.

    For models whose memory of a prompt cannot be shared, for gradient checkpointing, which keeps no
    keys and values, and for agents of several ranks, which have to make the same passes: of every
    micro-batch each rank computes its share. One without a row there computes one for nothing.

    Args:
        token_budget: of each rank.
        share: whose rows are computed here.
    """
    lengths = {i: len(p) + len(r) for i, (p, r) in enumerate(zip(prompts, responses, strict=True))}
    for batch in micro_batches(list(lengths), lengths, token_budget * share.size):
        part = list(share.of(batch))
        taken = part or batch[:1]
        sequences = pad(
            [prompts[i] for i in taken],
            [responses[i] for i in taken],
            policy.pad_id,
            policy.device,
        )
        with context():
            logprob_RT = response_logprobs(policy, sequences, temperature)
        yield part, logprob_RT[: len(part)], sequences.response_mask_RT[: len(part)]

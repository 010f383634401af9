"""Which rows go into which optimizer update, and which are computed together.

Rows are given by their index. Nothing here depends on the order of the agents, so that permuting
them permutes the results.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Literal

__all__ = ["micro_batches", "mini_batches"]

_SIMILAR = 0.7
"""A row of less than this share of the longest costs more as padding than in another group."""
_SMALL = 512
"""Tokens up to which a group is worth filling with padding rather than closing."""


def mini_batches(
    own: Sequence[int],
    peers: Mapping[str, Sequence[int]],
    count: int,
    order: Literal["own_first", "mixed"],
) -> list[list[int]]:
    """Split a step's rows into (1 + number of peers) · M mini-batches of equal size.

    `own_first`: M own mini-batches, then the peers', each of which holds every peer in equal share.
    `mixed`: every mini-batch holds every source, own rows included, in equal share. One pass over
    the rows in the order given.

    Args:
        own: rows of the learner's own responses.
        peers: rows of each source's responses.
        count: M, own mini-batches a step.

    Returns:
        Mini-batches; an entry is empty where so many rows were left out that none remain for it.
    """
    by_peer = [peers[name] for name in sorted(peers)]
    if order == "mixed" or not by_peer:
        return _stratified([own, *by_peer], count * (1 + len(by_peer)))
    return _stratified([own], count) + _stratified(by_peer, count * len(by_peer))


def micro_batches(
    rows: Sequence[int], lengths: Mapping[int, int], token_budget: int, context: int = 0
) -> list[list[int]]:
    """Group rows of similar length so that padded tokens stay within a budget.

    A much shorter row starts a group of its own, unless the group is still small.

    Args:
        lengths: tokens of each row that are computed.
        token_budget: limit of rows × (context + longest row); a row that is longer alone still gets
            its turn.
        context: further tokens that every row has before it.
    """
    batches: list[list[int]] = []
    for row in sorted(rows, key=lambda r: (-lengths[r], r)):
        if batches:
            longest, size = lengths[batches[-1][0]], len(batches[-1]) + 1
            similar = lengths[row] >= _SIMILAR * longest
            small = longest * size <= _SMALL
            if (context + longest) * size <= token_budget and (similar or small):
                batches[-1].append(row)
                continue
        batches.append([row])
    return batches


def _stratified(sources: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """`count` batches, each with its consecutive share of every source.

    Neither shares nor batches differ by more than one row: what a source has left over goes on
    from the batch where the leftovers of the one before ended.
    """
    batches: list[list[int]] = [[] for _ in range(count)]
    next_extra = 0
    for rows in sources:
        share, extra = divmod(len(rows), count)
        remaining = iter(rows)
        for i, batch in enumerate(batches):
            size = share + ((i - next_extra) % count < extra)
            batch.extend(itertools.islice(remaining, size))
        next_extra += extra
    return batches

"""From the rollouts of a step to its joint set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hacrl.records import Pool, Prompt, Rollout, Verified
from hacrl.verify.pool import VerifierPool

__all__ = ["verify_rollouts"]


def verify_rollouts(
    step: int,
    batch: Sequence[Prompt],
    group_size: int,
    rollouts: Mapping[str, Sequence[Rollout]],
    verifiers: VerifierPool,
) -> Pool:
    """Verify every response once; together they are the joint set of the step."""
    flat = [rollout for own in rollouts.values() for rollout in own]
    verdicts = verifiers.verify([(batch[rollout.prompt], rollout.text) for rollout in flat])
    rows = tuple(Verified(*row) for row in zip(flat, verdicts, strict=True))
    return Pool(step, tuple(rollouts), tuple(batch), group_size, rows)

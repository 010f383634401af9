"""One step's metrics, as they are written to `metrics.jsonl`: one object per agent.

The names are part of the interface; `docs/metrics.md` explains each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hacrl.loop import StepResult
from hacrl.records import Verified

__all__ = ["step_metrics"]


def step_metrics(result: StepResult) -> list[dict[str, Any]]:
    """Metrics of every agent for one step. None is a gap, never a zero."""
    pool = result.pool
    rows = []
    for k, report in enumerate(result.reports):
        learned = dict(report.metrics)
        peers = {name: j for j, name in enumerate(pool.agents) if name != report.agent}
        rows.append(
            {
                "step": pool.step,
                "agent": report.agent,
                "capability": result.capability[k],
                "omega": {name: result.omega[k][j] for name, j in peers.items()},
                **_sampled(pool.of(report.agent)),
                **learned,
                "seconds": {name: round(value, 4) for name, value in result.seconds.items()},
            }
        )
    return rows


def _sampled(rows: Sequence[Verified]) -> dict[str, Any]:
    rewards = [r.verdict.reward for r in rows if r.verdict.reward is not None]
    lengths = [r.rollout.length for r in rows]
    return {
        "reward": sum(rewards) / len(rewards) if rewards else None,
        "scored": len(rewards),
        "unscored": len(rows) - len(rewards),
        "outcomes": dict(Counter(str(r.verdict.outcome) for r in rows)),
        "policy_version": rows[0].rollout.policy_version,
        "generated_tokens": sum(lengths),
        "length_mean": sum(lengths) / len(lengths),
        "length_min": min(lengths),
        "length_max": max(lengths),
        "truncated": sum(not r.rollout.finished for r in rows) / len(rows),
        "unshareable": dict(
            Counter(r.rollout.unshareable for r in rows if r.rollout.unshareable is not None)
        ),
    }

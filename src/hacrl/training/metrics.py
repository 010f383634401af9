"""One step's metrics, as they are written to `metrics.jsonl`: one object per agent.

The names are part of the interface; `docs/metrics.md` explains each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hacrl.records import Pool, Verified
from hacrl.training.loop import Step

__all__ = ["step_metrics"]


def step_metrics(result: Step, tasks: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Metrics of every agent for one step. None is a gap, never a zero.

    Args:
        tasks: names of all tasks of the recipe; several are also shown apart.
    """
    pool = result.pool
    rows = []
    for report in result.reports:
        k = pool.agents.index(report.agent)
        judged = result.judgement.metrics.get(report.agent, {})
        peers = {name: j for j, name in enumerate(pool.agents) if name != report.agent}
        rows.append(
            {
                "step": pool.step,
                "agent": report.agent,
                "capability": result.capability[k],
                "omega": {name: result.omega[k][j] for name, j in peers.items()},
                **_sampled(pool.of(report.agent)),
                **({"tasks": _by_task(pool, report.agent, tasks)} if len(tasks) > 1 else {}),
                **judged,
                **report.metrics,
                "seconds": {name: round(value, 4) for name, value in result.seconds.items()},
            }
        )
    return rows


def _by_task(pool: Pool, agent: str, tasks: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Rewards of each task, also of those that the step had no prompt of."""
    return {
        task: _judged([r for r in pool.of(agent) if pool.prompts[r.rollout.prompt].task == task])
        for task in tasks
    }


def _judged(rows: Sequence[Verified]) -> dict[str, Any]:
    rewards = [r.verdict.reward for r in rows if r.verdict.reward is not None]
    return {
        "reward": sum(rewards) / len(rewards) if rewards else None,
        "scored": len(rewards),
        "unscored": len(rows) - len(rewards),
        "outcomes": dict(Counter(str(r.verdict.outcome) for r in rows)),
    }


def _sampled(rows: Sequence[Verified]) -> dict[str, Any]:
    lengths = [r.rollout.length for r in rows]
    return {
        **_judged(rows),
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

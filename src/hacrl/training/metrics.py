"""One step's metrics, as they are written to `metrics.jsonl`: one object per agent.

The names are part of the interface; `docs/metrics.md` explains each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from hacrl.records import Pool, Verified
from hacrl.training.loop import Step

__all__ = ["step_metrics"]


def step_metrics(
    result: Step, tasks: Sequence[str] = (), learners: Collection[str] | None = None
) -> list[dict[str, Any]]:
    """Metrics of every agent for one step. None is a gap, never a zero.

    An agent that does not learn has those of its responses alone; a learner that was lost has none.

    Args:
        tasks: names of all tasks of the recipe; several are also shown apart.
        learners: the agents that learn, None for all.
    """
    pool = result.pool
    reports = {report.agent: report for report in result.reports}
    rows = []
    for k, name in enumerate(pool.agents):
        row: dict[str, Any] = {
            "step": pool.step,
            "agent": name,
            "capability": result.capability[k],
        }
        if name in reports:
            ratios = zip(pool.agents, result.omega[k], strict=True)
            row["omega"] = {peer: ratio for peer, ratio in ratios if peer != name}
        elif learners is None or name in learners:
            continue
        own = pool.of(name)
        row |= _sampled(own)
        if name not in reports:  # a learner lacks none
            row["missing"] = len(pool.prompts) * pool.group_size - len(own)
        if len(tasks) > 1:
            row["tasks"] = _by_task(pool, name, tasks)
        if name in reports:
            row |= {**result.judgement.metrics.get(name, {}), **reports[name].metrics}
        row["seconds"] = {phase: round(value, 4) for phase, value in result.seconds.items()}
        rows.append(row)
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
    versions = {r.rollout.policy_version for r in rows}  # a recording has several
    return {
        **_judged(rows),
        "policy_version": versions.pop() if len(versions) == 1 else None,
        "generated_tokens": sum(lengths),
        "length_mean": sum(lengths) / len(lengths) if lengths else None,
        "length_min": min(lengths, default=None),
        "length_max": max(lengths, default=None),
        "truncated": sum(not r.rollout.finished for r in rows) / len(rows) if rows else None,
        "unshareable": dict(
            Counter(r.rollout.unshareable for r in rows if r.rollout.unshareable is not None)
        ),
    }

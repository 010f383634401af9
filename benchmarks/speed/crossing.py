"""Where training curves cross an accuracy, and what that took."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Point", "averaged", "compared", "end", "targets"]

ENDS = 3
"""Evaluations whose mean is the accuracy at the end."""
MEASURING = 1
"""Place of the accuracy that is compared."""


@dataclass(frozen=True, slots=True)
class Point:
    """One evaluation.

    Args:
        step: steps done, each of which draws responses once.
        seconds, cpu: wall and processor time of training so far.
        accuracy: of each agent, on tuning and on measuring problems.
    """

    step: int
    seconds: float
    cpu: float
    accuracy: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class _Cost:
    steps: float
    seconds: float
    cpu: float


def averaged(runs: Sequence[Sequence[Point]]) -> list[Point]:
    """The mean of runs with evaluations at the same steps."""
    return [
        Point(
            points[0].step,
            statistics.mean(point.seconds for point in points),
            statistics.mean(point.cpu for point in points),
            {
                agent: (
                    statistics.mean(point.accuracy[agent][0] for point in points),
                    statistics.mean(point.accuracy[agent][1] for point in points),
                )
                for agent in points[0].accuracy
            },
        )
        for points in zip(*runs, strict=True)
    ]


def end(run: Sequence[Point], agent: str, problems: int = MEASURING) -> float:
    """An agent's accuracy after training."""
    return statistics.mean(point.accuracy[agent][problems] for point in run[-ENDS:])


def targets(runs: Mapping[str, Sequence[Point]], way: float) -> dict[str, float]:
    """The accuracy of each agent after a share of the way from its first to its last.

    Args:
        runs: of each agent.
    """
    found = {}
    for agent, run in runs.items():
        first = run[0].accuracy[agent][MEASURING]
        found[agent] = first + way * (end(run, agent) - first)
    return found


def compared(
    ours: Sequence[Point],
    theirs: Mapping[str, Sequence[Point]],
    wanted: Mapping[str, float],
    rollouts: int,
) -> dict[str, Any]:
    """What one run of all agents, and a run for each, take until every agent is as good as wanted.

    Args:
        wanted: accuracy that each agent is to reach.
        rollouts: of each agent in a step.

    Returns:
        Accuracies, steps and costs; no costs where an agent did not get there.
    """
    mine = {agent: _reached(ours, agent, value) for agent, value in wanted.items()}
    other = {agent: _reached(theirs[agent], agent, value) for agent, value in wanted.items()}
    found: dict[str, Any] = {
        "accuracy_to_reach": {agent: round(value, 3) for agent, value in wanted.items()},
        "steps_needed": {
            side: {agent: cost and round(cost.steps, 1) for agent, cost in costs.items()}
            for side, costs in (("hacpo", mine), ("trl", other))
        },
    }
    our_costs = [cost for cost in mine.values() if cost]
    their_costs = [cost for cost in other.values() if cost]
    if len(our_costs) == len(their_costs) == len(wanted):
        last = max(our_costs, key=lambda cost: cost.steps)
        found["hacpo"] = {
            "rollouts": round(last.steps * rollouts * len(wanted)),
            "seconds": round(last.seconds, 1),
            "cpu_seconds": round(last.cpu, 1),
        }
        found["trl"] = {
            "rollouts": round(sum(cost.steps for cost in their_costs) * rollouts),
            "seconds": round(sum(cost.seconds for cost in their_costs), 1),
            "cpu_seconds": round(sum(cost.cpu for cost in their_costs), 1),
        }
        found["share_of_trl"] = {
            key: round(found["hacpo"][key] / cost, 2) for key, cost in found["trl"].items()
        }
    return found


def _reached(run: Sequence[Point], agent: str, wanted: float) -> _Cost | None:
    """What it took until an agent was first as good as wanted, None if it never was.

    Linear between evaluations.
    """
    before = run[0]
    for point in run:
        low, high = (one.accuracy[agent][MEASURING] for one in (before, point))
        if high >= wanted:
            part = (wanted - low) / (high - low) if high > low else 0.0
            return _Cost(
                before.step + part * (point.step - before.step),
                before.seconds + part * (point.seconds - before.seconds),
                before.cpu + part * (point.cpu - before.cpu),
            )
        before = point
    return None

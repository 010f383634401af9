"""Tables of the report: what the runs were, and what came of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from hacrl.console.progress import duration
from hacrl.report.reading import Row, RunData
from hacrl.report.series import Group, get, t_interval
from hacrl.runs.origin import origin

__all__ = ["run_facts", "summary", "task_lines"]

_EDGE = 0.1
"""Share of the steps at either end whose mean is shown."""


def run_facts(run: RunData) -> list[tuple[str, str]]:
    """What a reader wants to know of a run before its curves."""
    setting = run.setting
    group = (setting("sampling.group_size") or 0) * (setting("sampling.multiplier") or 1)
    delta = setting("clip.delta")
    facts = [
        ("state", run.state),
        ("steps", f"{run.completed:,} of {setting('steps') or 0:,}"),
        ("steps without", _missed(run)),
        ("method", run.method or None),
        ("seed", setting("seed")),
        ("sharing", _sharing(setting("sharing"))),
        ("rollouts", f"{setting('prompts_per_step')} prompts × {group} per agent and step"),
        ("mini-batches", setting("update.mini_batches")),
        ("learning rate", f"{setting('optimizer.learning_rate')}, {setting('optimizer.schedule')}"),
        ("own clip", f"−{setting('clip.own_low')} / +{setting('clip.own_high')}"),
        ("cross clip", setting("clip.cross")),
        ("δ, δ_step, α", f"{delta}, {setting('clip.delta_step')}, {setting('ratio.alpha')}"),
        ("capability window", setting("capability.window")),
        ("sampling", _sampling(run)),
        ("time in steps", duration(_seconds(run))),
        ("computed on", _machines(run)),
        ("versions", ", ".join(f"{name} {value}" for name, value in run.versions.items())),
    ]
    if not run.recipe:
        facts = [
            fact
            for fact in facts
            if fact[0] in ("state", "time in steps", "computed on", "versions")
        ]
    return [(name, str(value)) for name, value in facts if value not in (None, "")]


def task_lines(run: RunData) -> list[str]:
    """One line per task and per held-out task."""
    lines = []
    held_out = run.setting("evaluation.tasks") or {}
    for kind, tasks in (("trained on", run.setting("tasks") or {}), ("held out", held_out)):
        for name, task in tasks.items():
            place = origin(task.get("source") or {})
            lines.append(f"{name} ({kind}): {place}, verifier {_verifier(task)}")
    return lines


def summary(groups: Sequence[Group]) -> list[dict[str, str]]:
    """A row per group and agent: where it began, where it is, and what it cost."""
    return [
        _agent(group, agent)
        for group in groups
        for agent in dict.fromkeys(name for run in group.runs for name in run.agents)
    ]


def _agent(group: Group, agent: str) -> dict[str, str]:
    runs = [run for run in group.runs if run.of(agent)]
    learns = all(run.learns(agent) for run in runs)
    rows = [row for run in runs for row in run.of(agent) if run.learns(agent)]
    rollouts = [sum(row["scored"] + row["unscored"] for row in run.of(agent)) for run in runs]
    tokens = [sum(row["generated_tokens"] for row in run.of(agent)) for run in runs]
    taught = [
        shares["teaching"] for row in rows for shares in row["sources"].values() if shares["rows"]
    ]
    silent = sum(row["groups_without_signal"] for row in rows)
    total = sum(row["groups"] for row in rows)
    return {
        "run": group.label,
        "agent": agent if learns else f"{agent} (does not learn)",
        "reward": _change(
            [_edge(run.of(agent), first=True) for run in runs],
            [_edge(run.of(agent), first=False) for run in runs],
        ),
        "held out": _held_out(group, agent),
        "cross rows that taught": f"{statistics.fmean(taught):.0%}" if taught else "–",
        "groups without signal": f"{silent / total:.0%}" if total else "–",
        "own rollouts": f"{statistics.fmean(rollouts):,.0f}" if rollouts else "–",
        "own tokens": f"{statistics.fmean(tokens):,.0f}" if tokens else "–",
    }


def _edge(rows: Sequence[Row], *, first: bool) -> float:
    """Mean reward over the first or last tenth of the steps, one step at least."""
    known = [value for row in rows if not math.isnan(value := get(row, "reward"))]
    count = max(1, round(_EDGE * len(known)))
    part = known[:count] if first else known[-count:]
    return statistics.fmean(part) if part else math.nan


def _change(before: Sequence[float], after: Sequence[float]) -> str:
    return f"{_interval(before)} → {_interval(after)}"


def _interval(values: Sequence[float]) -> str:
    mean, _, high = t_interval([value for value in values if not math.isnan(value)])
    if math.isnan(mean):
        return "–"
    return f"{mean:.3f}" if math.isnan(high) else f"{mean:.3f} ± {high - mean:.3f}"


def _held_out(group: Group, agent: str) -> str:
    """First and last evaluation, per held-out task."""
    lines = []
    evaluated = [row for run in group.runs for row in run.evaluations if row["agent"] == agent]
    tasks = list(dict.fromkeys(row["task"] for row in evaluated))
    for task in tasks:
        series = [
            [
                row["value"]
                for row in run.evaluations
                if (row["agent"], row["task"]) == (agent, task) and row["value"] is not None
            ]
            for run in group.runs
        ]
        series = [values for values in series if values]
        if not series:
            continue
        ends = _interval([values[-1] for values in series])
        if any(len(values) > 1 for values in series):
            ends = f"{_interval([values[0] for values in series])} → {ends}"
        lines.append(ends if len(tasks) == 1 else f"{task} {ends}")
    return "; ".join(lines) or "–"


def _seconds(run: RunData) -> float:
    steps = {row["step"]: row["seconds"] for row in run.rows}
    return float(sum(sum(seconds.values()) for seconds in steps.values()))


def _verifier(task: Mapping[str, Any]) -> str:
    """Its type, or those of the parts of a sum."""
    verifier = task.get("verifier") or {}
    parts = [part.get("verifier", {}).get("type", "") for part in verifier.get("parts") or ()]
    return f"{verifier.get('type', '')}{' of ' + ', '.join(parts) if parts else ''}"


def _missed(run: RunData) -> str:
    """How many steps went on without an agent that was lost."""
    steps = {row["step"] for row in run.rows}
    missed = {name: len(steps) - len(run.of(name)) for name in run.agents}
    return ", ".join(f"{name} in {count:,}" for name, count in missed.items() if count)


def _machines(run: RunData) -> str:
    """Each kind of machine, with its agents if there are several."""
    kinds: dict[str, list[str]] = {}
    for name, own in run.machines.items():
        about = f"{own.get('instructions')}, {own.get('threads')} threads"
        kinds.setdefault(f"{own.get('processor')} ({about})", []).append(name)
    if len(kinds) == 1:
        return next(iter(kinds))
    return "; ".join(f"{', '.join(names)}: {kind}" for kind, names in kinds.items())


def _sharing(value: Any) -> str | None:
    if isinstance(value, Mapping):
        return "; ".join(f"{name} ← {', '.join(sources)}" for name, sources in value.items())
    return None if value is None else str(value)


def _sampling(run: RunData) -> str:
    return (
        f"temperature {run.setting('sampling.temperature')}, "
        f"at most {run.setting('sampling.max_new_tokens')} tokens"
    )

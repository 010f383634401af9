"""Parts (a) to (d) and (f): ours and theirs, side by side."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed.turns import Server, Turn, alternate, running, seconds
from benchmarks.speed.with_generate import serve_generate
from benchmarks.speed.with_hacrl import (
    HacrlWork,
    serve_on_ray,
    serve_sampling,
    serve_steps,
    serve_updates,
)
from benchmarks.speed.with_trl import TrlWork, serve_trl
from benchmarks.speed.work import Lengths, ModelName, Work, folder

__all__ = [
    "as_many_updates",
    "cases",
    "ends",
    "one_pass",
    "sampling",
    "steps",
    "two_cores",
    "updates",
]

ROUNDS: Mapping[ModelName, int] = {"tiny": 21, "smollm": 3}
SIZES: Mapping[ModelName, tuple[int, int]] = {"tiny": (16, 8), "smollm": (2, 8)}
"""P and G."""
LIMITS: Mapping[tuple[ModelName, Lengths], int] = {
    ("tiny", "equal"): 24,
    ("tiny", "mixed"): 64,
    ("smollm", "equal"): 24,
    ("smollm", "mixed"): 48,
}
TRL_ROWS: Mapping[ModelName, int] = {"tiny": 32, "smollm": 8}
"""Rows of a forward and backward pass at which TRL was fastest."""


def cases(models: Sequence[ModelName], silent: Sequence[bool] = (False, True)) -> list[Work]:
    """Every kind of step."""
    kinds: tuple[Lengths, ...] = ("equal", "mixed")
    return [
        Work(model, lengths, quiet, *SIZES[model], LIMITS[model, lengths])
        for model in models
        for lengths in kinds
        for quiet in silent
    ]


def ends(models: Sequence[ModelName]) -> list[Work]:
    """The kind of step that leaves least to gain, and the kind that leaves most."""
    return [work for work in cases(models) if (work.lengths == "mixed") == work.silent]


def steps(work: Work, scratch: Path) -> dict[str, Any]:
    """(a), (f) One step of one agent: GSPO here against GSPO in TRL."""
    model = folder(work, scratch)
    return _compared(
        work,
        {
            "hacrl": (serve_steps, HacrlWork(work, {"a": model})),
            "trl": (serve_trl, TrlWork(work, model, scratch / "trl", TRL_ROWS[work.model])),
        },
    )


def updates(work: Work, scratch: Path) -> dict[str, Any]:
    """(c) The update alone, from rollouts that stay the same; the weights hardly move."""
    model, rate = folder(work, scratch), 1e-12
    return _compared(
        work,
        {
            "hacrl": (
                serve_updates,
                HacrlWork(work, {"a": model}, {"optimizer": {"learning_rate": rate}}),
            ),
            "trl": (
                serve_trl,
                TrlWork(
                    work,
                    model,
                    scratch / "trl",
                    TRL_ROWS[work.model],
                    sample_once=True,
                    changes={"learning_rate": rate},
                ),
            ),
        },
    )


def sampling(work: Work, scratch: Path) -> dict[str, Any]:
    """(b) Sampling alone. A vLLM side belongs here, where vLLM is installed."""
    job = HacrlWork(work, {"a": folder(work, scratch)})
    return _compared(work, {"hacrl": (serve_sampling, job), "generate": (serve_generate, job)})


def one_pass(work: Work, scratch: Path) -> dict[str, Any]:
    """(d) A HACPO step of two agents against two trainers with one pass over their own responses,
    all one after another on one core.

    From the same number of rollouts HACPO learns twice as much: every agent also learns from the
    other's.
    """
    return _two_agents(work, scratch, "trl", 1)


def as_many_updates(work: Work, scratch: Path) -> dict[str, Any]:
    """(d) The same against two trainers with two passes, which make as many updates from as many
    rows as HACPO does."""
    return _two_agents(work, scratch, "trl_two_passes", 2)


def _two_agents(work: Work, scratch: Path, name: str, passes: int) -> dict[str, Any]:
    models = {"a": folder(work, scratch, 1), "b": folder(work, scratch, 2)}
    ours = (serve_steps, HacrlWork(work, models))
    theirs = {agent: _trainer(work, models[agent], scratch, passes) for agent in models}
    turns = _turns(work, {"hacrl": ours, **theirs})
    return _result(work, {"hacrl": turns["hacrl"], name: _together(turns["a"], turns["b"])})


def two_cores(work: Work, scratch: Path) -> dict[str, Any]:
    """(d) The same with two cores: HACPO on Ray, both agents at once with a core each, against two
    trainers with one pass over their own; at once with a core each, or in turn with both cores.

    Only wall times: Ray's workers are processes of their own.
    """
    models = {"a": folder(work, scratch, 1), "b": folder(work, scratch, 2)}
    ours = (serve_on_ray, HacrlWork(work, models, {"fleet": "ray", "threads": 1}))
    theirs = {agent: _trainer(work, models[agent], scratch, 1) for agent in models}
    with running({"hacrl": ours, **theirs}) as wires:
        turns = alternate(
            {
                "hacrl": [wires["hacrl"]],
                "trl_at_once": [wires["a"], wires["b"]],
                "in turn a": [wires["a"]],
                "in turn b": [wires["b"]],
            },
            ROUNDS[work.model],
            threads={"in turn a": 2, "in turn b": 2},
        )
    in_turn = _together(turns.pop("in turn a"), turns.pop("in turn b"))
    found = _result(work, {**turns, "trl_in_turn": in_turn})
    for measured in (*found["seconds"].values(), *found["times_faster_than"].values()):
        for key in ("cpu_median", "peak_mib", "memory"):
            measured.pop(key, None)
    return found


def _trainer(work: Work, model: Path, scratch: Path, passes: int) -> tuple[Server, Any]:
    rows = TRL_ROWS[work.model]
    return serve_trl, TrlWork(work, model, scratch / f"trl-{model.name}", rows, passes)


def _together(left: Sequence[Turn], right: Sequence[Turn]) -> list[Turn]:
    return [
        Turn(a.wall + b.wall, a.cpu + b.cpu, a.peak + b.peak)
        for a, b in zip(left, right, strict=True)
    ]


def _compared(work: Work, sides: Mapping[str, tuple[Server, Any]]) -> dict[str, Any]:
    return _result(work, _turns(work, sides))


def _turns(work: Work, sides: Mapping[str, tuple[Server, Any]]) -> dict[str, list[Turn]]:
    """Every side does its steps alone."""
    with running(sides) as wires:
        return alternate({name: [wire] for name, wire in wires.items()}, ROUNDS[work.model])


def _result(work: Work, turns: Mapping[str, Sequence[Turn]]) -> dict[str, Any]:
    """Seconds and memory of each side, and how many times faster than each other side we are."""
    ours = turns["hacrl"]
    return {
        "case": work.name,
        "prompts": work.prompts,
        "group_size": work.group_size,
        "max_new_tokens": work.max_new_tokens,
        "seconds": {name: seconds(own) for name, own in turns.items()},
        "times_faster_than": {
            name: _ratios(own, ours) for name, own in turns.items() if name != "hacrl"
        },
    }


def _ratios(theirs: Sequence[Turn], ours: Sequence[Turn]) -> dict[str, float]:
    """Median, least and most of the ratios round by round; and of processor time."""
    walls = [a.wall / b.wall for a, b in zip(theirs, ours, strict=True)]
    return {
        "median": round(statistics.median(walls), 2),
        "min": round(min(walls), 2),
        "max": round(max(walls), 2),
        "cpu_median": round(
            statistics.median(a.cpu / b.cpu for a, b in zip(theirs, ours, strict=True)), 2
        ),
        "memory": round(theirs[-1].peak / ours[-1].peak, 2),
    }

"""The measured tables of `docs/speed.md`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["write_report"]

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"

TITLES = {
    "a": "(a), (f) One GSPO step of one agent, and peak memory",
    "b": "(b) Sampling alone",
    "c": "(c) The update alone",
    "d": "(d) A HACPO step of two agents, one core",
    "d2": "(d) The same with two cores",
    "e": "(e) The controller's own work",
    "g": "(g) Until both agents of the demo reach a given accuracy",
    "bounds": "What bounds the rest",
}


def write_report(results: Path, report: Path) -> None:
    """Put the tables of all results there are between the marks of the report."""
    parts = []
    for part, title in TITLES.items():
        path = results / f"speed_{part}.json"
        if path.is_file():
            result = json.loads(path.read_text("utf-8"))
            parts += [f"### {title}", _where(result["machine"]), _TABLES[part](result["results"])]
    text = report.read_text("utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    report.write_text(before + "\n\n".join([BEGIN, *parts, END]) + after, "utf-8")


def _where(machine: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return (
        f"{machine['cpu']}, {machine['cpus']} cores, {machine['memory_gib']} GiB, one thread a "
        f"process; Python {machine['python']}, {versions}; load when it began "
        f"{machine['load_average']}."
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _pairs(results: list[dict[str, Any]]) -> str:
    """One line a comparison; without processor time and memory where they were not measured."""
    head = ["case, P×G×limit", "against", "hacrl, s", "other, s", "times faster (range)"]
    whole = "cpu_median" in results[0]["seconds"]["hacrl"]
    if whole:
        head += ["by processor time", "peak MiB, hacrl / other"]
    rows = []
    for found in results:
        ours = found["seconds"]["hacrl"]
        shape = f"{found['prompts']}×{found['group_size']}×{found['max_new_tokens']}"
        for other, ratio in found["times_faster_than"].items():
            theirs = found["seconds"][other]
            row = [
                f"{found['case']}, {shape}",
                other,
                f"{ours['median']:.3f}",
                f"{theirs['median']:.3f}",
                f"**{ratio['median']:.2f}** ({ratio['min']:.2f}-{ratio['max']:.2f})",
            ]
            if whole:
                row += [f"{ratio['cpu_median']:.2f}", f"{ours['peak_mib']} / {theirs['peak_mib']}"]
            rows.append(row)
    return _table(head, rows)


def _controller(results: dict[str, Any]) -> str:
    rows = [
        (
            row["agents"],
            row["responses_per_agent"],
            row["seconds"],
            row["microseconds_per_lesson"],
            max(row["parts"], key=row["parts"].get),
        )
        for row in results["overheads"]
    ]
    shares = [
        (step["agents"], step["responses_per_agent"], step["seconds"], f"{step['share']:.1%}")
        for step in results["steps"]
    ]
    lesson = "µs a lesson (response × learner)"
    return "\n\n".join(
        [
            _table(("agents", "responses of each", "seconds", lesson, "most of it"), rows),
            f"Of a whole step ({results['steps'][0]['case']}):",
            _table(("agents", "responses of each", "step, s", "the controller's share"), shares),
        ]
    )


def _race(found: dict[str, Any]) -> str:
    agents = list(found["accuracy_to_reach"])
    rows = [
        (
            agent,
            found["accuracy_to_reach"][agent],
            found["at_the_end"]["hacpo"][agent],
            found["steps_needed"]["hacpo"][i] or "not reached",
            found["steps_needed"]["trl"][i] or "not reached",
        )
        for i, agent in enumerate(agents)
    ]
    text = _table(
        ("agent", "accuracy to reach", "HACPO at its end", "HACPO's steps", "TRL's steps"), rows
    )
    if "share_of_trl" in found:
        cost = [
            (key, found["hacpo"][key], found["trl"][key], found["share_of_trl"][key])
            for key in ("rollouts", "seconds", "cpu_seconds")
        ]
        text += "\n\n" + _table(("until both do", "HACPO", "TRL, both runs", "share"), cost)
    rates = found["rates"]
    return text + (
        f"\n\nLearning rates {', '.join(f'{rate:g}' for rate in found['grid'])} were tried on each "
        f"side; best: HACPO {rates['hacpo']:g}, TRL "
        + ", ".join(f"{rates['trl'][agent]:g} ({agent})" for agent in agents)
        + "."
    )


def _bounds(results: list[dict[str, Any]]) -> str:
    machine = results[0]["machine"]
    products = ", ".join(
        f"{rate} GFLOP/s with {rows}" for rows, rate in machine["matrix_products_gflops"].items()
    )
    rows = [
        (
            found["case"],
            phase,
            f"{found[phase]['matrix_products']:.0%}",
            found[phase]["matrix_products_gflops"],
            f"{found[phase]['attention']:.0%}",
            f"{found[phase]['elementwise_and_copies']:.0%}",
            f"{found[phase]['outside']:.0%}",
        )
        for found in results
        for phase in ("sampling", "update")
    ]
    head = (
        *("case", "phase", "matrix products", "at GFLOP/s", "attention"),
        *("elementwise, copies", "Python, dispatch, profiler"),
    )
    return (
        f"This machine, one thread: {products}; memory {machine['memory_gb_per_second']} GB/s.\n\n"
        + _table(head, rows)
    )


_TABLES: dict[str, Any] = {
    **dict.fromkeys(("a", "b", "c", "d", "d2"), _pairs),
    "e": _controller,
    "g": _race,
    "bounds": _bounds,
}

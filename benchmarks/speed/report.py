"""The measured tables of `docs/speed.md`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed.figure import draw_race

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
            if part == "g":
                draw_race(result["results"], report.parent / "speed" / "race.svg")
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
    agents = list(found["at_the_end"]["trl"])
    ends = _table(
        ("", *agents),
        (
            (name, *(f"{found['at_the_end'][side][agent]:.1%}" for agent in agents))
            for name, side in (("HACPO at its end", "hacpo"), ("TRL at its end", "trl"))
        ),
    )
    rows = [
        (
            f"{one['way']:.0%}",
            *(f"{one['accuracy_to_reach'][agent]:.1%}" for agent in agents),
            *(_steps(one["steps_needed"][side]) for side in ("hacpo", "trl")),
            *_shares(one),
        )
        for one in found["comparisons"]
    ]
    head = (
        *("share of the way", *agents, "HACPO's steps", "TRL's steps"),
        *("rollouts", "seconds", "processor seconds"),
    )
    seeds = _table(
        ("seed", "HACPO's steps", "TRL's steps", "rollouts", "seconds", "processor seconds"),
        (
            (seed, *(_steps(one["steps_needed"][side]) for side in ("hacpo", "trl")), *_shares(one))
            for seed, one in zip(found["seeds"], found["by_seed"], strict=True)
        ),
    )
    ours = found["chosen"]["hacpo"]
    theirs = found["chosen"]["trl"]
    rates = ", ".join(f"{rate:g} ({agent})" for agent, rate in ours["rates"].items())
    trainers = ", ".join(
        f"{one['rate']:g}, mini-batches {one['mini_batches']}, passes {one['passes']} ({agent})"
        for agent, one in theirs.items()
    )
    return "\n\n".join(
        [
            f"Chosen: HACPO {rates}, own mini-batches {ours['mini_batches']}; TRL {trainers}.",
            ends,
            "![Held-out accuracy by rollouts and by time](speed/race.svg)",
            "What HACPO takes of what both TRL runs take, by mean curves:",
            _table(head, rows),
            "The last line seed by seed, to the same accuracies:",
            seeds,
        ]
    )


def _steps(needed: dict[str, float | None]) -> str:
    return " / ".join("not reached" if n is None else f"{n:g}" for n in needed.values())


def _shares(found: dict[str, Any]) -> tuple[str, ...]:
    """Rollouts, seconds and processor seconds as shares of TRL's."""
    shares = found.get("share_of_trl")
    return tuple(f"{share:.2f}" for share in shares.values()) if shares else ("", "", "")


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

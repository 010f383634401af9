"""What people see of a run: a live display on a terminal, plain lines everywhere else."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from hacrl.console.terminal import is_live, say

if TYPE_CHECKING:
    from hacrl.console.observer import Observer

__all__ = ["duration", "watch"]

Metrics = Sequence[Mapping[str, Any]]

_LONG = 20.0
"""Seconds without a line after which the next phase is announced."""


@contextmanager
def watch(steps: int, console: Console) -> Iterator[Observer]:
    """Show a run of `steps` steps on a console while the block lasts."""
    if not is_live(console):
        yield _Lines(steps, console)
        return
    display = _Display(steps, console)
    with Live(console=console, get_renderable=display.render, refresh_per_second=4):
        yield display


class _Lines:
    """One line a step, without control characters or colour; phases too where steps are long.

    Once a phase of a step is announced, those that follow it are, so that the last line is true.
    """

    def __init__(self, steps: int, console: Console) -> None:
        self._steps = steps
        self._console = console
        self._quiet_since = time.monotonic()
        self._announced: int | None = None
        self._explained = False

    def note(self, text: str) -> None:
        _print_note(self._console, text)

    def phase(self, name: str, step: int) -> None:
        if step == self._announced or time.monotonic() - self._quiet_since > _LONG:
            self._announced = step
            say(self._console, f"step {step + 1}/{self._steps}: {name}")

    def step(self, metrics: Metrics, seconds_left: float) -> None:
        if not self._explained:
            self._explained = True
            taught = ", (<-peer: share of its rows learned from)"
            shared = any(row.get("sources") for row in metrics)
            say(self._console, f"each step: agent, mean reward{taught if shared else ''}")
        parts = [
            f"step {metrics[0]['step'] + 1}/{self._steps}",
            *(_agent(row) for row in metrics),
            *_on_policy(metrics),
            duration(_seconds(metrics)),
            f"{duration(seconds_left)} left",
        ]
        self._quiet_since = time.monotonic()
        self._announced = None
        say(self._console, " | ".join(parts))


class _Display:
    """Progress bar and a row per agent, redrawn in place."""

    def __init__(self, steps: int, console: Console) -> None:
        self._console = console
        self._metrics: Metrics = ()
        self._bar = Progress(
            TextColumn("step"),
            MofNCompleteColumn(),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[phase]:>8}"),
            TextColumn("{task.fields[left]:>12}"),
            console=console,
            expand=True,
        )
        self._task = self._bar.add_task("", total=steps, phase="loading", left="")

    def note(self, text: str) -> None:
        _print_note(self._console, text)

    def phase(self, name: str, step: int) -> None:
        self._bar.update(self._task, phase=name)

    def step(self, metrics: Metrics, seconds_left: float) -> None:
        self._metrics = metrics
        done = metrics[0]["step"] + 1
        self._bar.update(self._task, completed=done, left=f"{duration(seconds_left)} left")

    def render(self) -> Group:
        return Group(self._table(self._metrics), self._bar) if self._metrics else Group(self._bar)

    @staticmethod
    def _table(metrics: Metrics) -> Table:
        caption = " · ".join([*_on_policy(metrics), f"{duration(_seconds(metrics))} per step"])
        table = Table(box=box.SIMPLE_HEAD, caption=caption, caption_justify="left")
        table.add_column("agent", overflow="ellipsis", no_wrap=True)
        for name in ("reward", "capability", "no signal"):
            table.add_column(name, justify="right")
        table.add_column("teaching rows, by source")
        for row in metrics:
            table.add_row(
                Text(row["agent"]),
                _number(row["reward"]),
                _number(row["capability"]),
                f"{row['groups_without_signal']}/{row['groups']}" if "groups" in row else "-",
                Text("  ".join(_lessons(row)) or "-"),
            )
        return table


def duration(seconds: float) -> str:
    """A span of time in two units at most, such as `4.2s`, `3m10s`, `2h05m`."""
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    minutes = round(seconds / 60)
    return f"{minutes // 60}h{minutes % 60:02}m"


def _agent(row: Mapping[str, Any]) -> str:
    taught = f" ({' '.join(lessons)})" if (lessons := _lessons(row)) else ""
    return f"{row['agent']} {_number(row['reward'])}{taught}"


def _lessons(row: Mapping[str, Any]) -> list[str]:
    """What share of each source's rows had a gradient."""
    return [
        f"<-{source} {shares['teaching']:.0%}"
        for source, shares in row.get("sources", {}).items()
        if shares["teaching"] is not None
    ]


def _on_policy(metrics: Metrics) -> list[str]:
    """Says so where a single update a step makes every ratio 1 and clipping idle."""
    learners = [row for row in metrics if "on_policy" in row]
    names = [row["agent"] for row in learners if row["on_policy"]]
    if not names:
        return []
    return ["on-policy" if len(names) == len(learners) else f"on-policy: {', '.join(names)}"]


def _seconds(metrics: Metrics) -> float:
    return float(sum(metrics[0]["seconds"].values()))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _print_note(console: Console, text: str) -> None:
    say(console, f"note: {text}")

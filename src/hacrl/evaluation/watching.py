"""What people see while an evaluation runs: a bar on a terminal, plain lines everywhere else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from hacrl.console.progress import duration
from hacrl.console.terminal import is_live, say

if TYPE_CHECKING:
    from hacrl.evaluation.asking import Watcher

__all__ = ["watch"]

_BETWEEN_LINES = 10.0
"""Seconds."""


@contextmanager
def watch(total: int, console: Console) -> Iterator[Watcher]:
    """Show on a console how many of `total` responses are done while the block lasts."""
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("responses, {task.fields[left]}"),
        console=console,
        disable=not is_live(console),
    )
    with bar:
        yield _Watcher(total, console, bar)


class _Watcher:
    def __init__(self, total: int, console: Console, bar: Progress) -> None:
        self._total = total
        self._console = console
        self._bar = bar
        self._task = bar.add_task("", total=total, left="loading")
        self._started = time.monotonic()
        self._printed = self._started - _BETWEEN_LINES  # the first line comes at once
        self._stored = 0
        self._new = 0

    def note(self, text: str) -> None:
        say(self._console, f"note: {text}")

    def progress(self, place: str, new: int, *, stored: bool = False) -> None:
        if stored:
            self._stored += new
            self._bar.update(self._task, completed=self._stored + self._new)
            if new:
                say(self._console, f"{place}: {new} responses are already stored")
            return
        self._new += new
        done, now = self._stored + self._new, time.monotonic()
        seconds = (now - self._started) / self._new * (self._total - done)
        left = f"{duration(seconds)} left"
        self._bar.update(self._task, description=place, completed=done, left=left)
        if self._bar.disable and (now - self._printed > _BETWEEN_LINES or done == self._total):
            self._printed = now
            say(self._console, f"{place} | {done}/{self._total} responses | {left}")

"""The phases of a step: timing, progress, and the place where Ctrl-C takes effect."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupted", "Phases", "finish_phase_on_interrupt"]

_WISHES = (signal.SIGINT, signal.SIGTERM)


class Interrupted(Exception):  # noqa: N818 - a wish, not an error
    """The user asked to stop, and the phase that was running has ended."""


class Phases:
    """Times phases and ends the run between two of them if asked to.

    Args:
        started: told of each phase and step as it starts.
        stop: whether the user asked to stop.
    """

    def __init__(self, started: Callable[[str, int], None], stop: Callable[[], bool]) -> None:
        self._started = started
        self._stop = stop
        self._seconds: dict[str, float] = {}
        self._step = 0

    @contextmanager
    def __call__(self, name: str, step: int) -> Iterator[None]:
        """Run the block as a phase. Phases follow one another, none is inside another.

        Raises:
            Interrupted: instead of it, if the user asked to stop during what came before.
        """
        if self._stop():
            raise Interrupted
        self._step = step
        self._started(name, step)
        start = time.perf_counter()
        yield
        self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - start

    def last(self, name: str) -> None:
        """Say what is done after all phases, whether or not the user asked to stop."""
        self._started(name, self._step)

    def seconds(self) -> dict[str, float]:
        """Seconds by phase since the last call."""
        seconds, self._seconds = self._seconds, {}
        return seconds


@contextmanager
def finish_phase_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C wait for the end of the phase; a second one stops at once.

    SIGTERM, by which schedulers take a machine back, is treated alike. Says so on the standard
    error stream. Yields whether one came. Signals reach the main thread alone; elsewhere nothing is
    installed.
    """
    asked = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        asked.set()
        for wish in _WISHES:
            signal.signal(wish, signal.default_int_handler)
        # The signal may have come in the middle of a print, which cannot be entered twice.
        os.write(2, b"stopping after this phase; Ctrl-C again stops at once\n")

    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    previous = {wish: signal.signal(wish, handle) for wish in _WISHES}
    try:
        yield asked.is_set
    finally:
        for wish, handler in previous.items():
            signal.signal(wish, handler)

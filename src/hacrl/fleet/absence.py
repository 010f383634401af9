"""Agents that are missing while the others go on, and how they return."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from hacrl.errors import UserError
from hacrl.fleet.ranks import Asked, RankError

__all__ = ["Absences"]


class Absences:
    """Who is missing. An agent is loaded again at once, and rejoins when it is asked to.

    Args:
        retries: how often each agent is taken back.
        reload: begins to load an agent of that name in new processes.
        explain: why an agent failed to start.
        note: called when an agent returns, from any thread.
    """

    def __init__(
        self,
        retries: int,
        reload: Callable[[str], Asked],
        explain: Callable[[str, RankError], str],
        note: Callable[[str], None],
    ) -> None:
        self._retries = retries
        self._reload = reload
        self._explain = explain
        self._note = note
        self._calls: dict[str, Asked | None] = {}  # None for one that does not return
        self._times: Counter[str] = Counter()
        self._lock = threading.Lock()  # a checkpoint runs beside sampling, and may notice as well

    def __contains__(self, name: object) -> bool:
        return name in self._calls

    def add(self, name: str) -> bool:
        """An agent is gone; whether that is news, since another call may have noticed before."""
        with self._lock:
            new = name not in self._calls
            if new:
                self._begin(name)
            return new

    def clear(self) -> None:
        """All are there."""
        self._calls.clear()

    def take_back(self, restore: Callable[[str], None], seconds: float) -> None:
        """Let those rejoin that are loaded again.

        Args:
            restore: brings an agent to where it was last saved.
            seconds: to wait for each.
        """
        for name, call in list(self._calls.items()):
            if call is None or not call.decided(seconds):
                continue
            try:
                call.wait(seconds)
                restore(name)
            except (RankError, UserError) as error:
                why = self._explain(name, error) if isinstance(error, RankError) else error
                self._note(f"agent {name} could not rejoin: {why}")
                with self._lock:
                    self._begin(name)
                continue
            del self._calls[name]
            self._note(f"agent {name} has rejoined, as it was when it was last saved")

    def _begin(self, name: str) -> None:
        self._times[name] += 1
        if self._times[name] > self._retries:
            self._calls[name] = None
            self._note(f"agent {name} is not taken back any more, see fleet.retries")
        else:
            self._calls[name] = self._reload(name)

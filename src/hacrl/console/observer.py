"""The interface by which a run reports its progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

__all__ = ["Observer", "Silent"]


class Observer(Protocol):
    """Receives the progress of a run; see `hacrl.console.progress` for what people see."""

    def note(self, text: str) -> None:
        """One line worth reading."""

    def phase(self, name: str, step: int) -> None:
        """A phase of a step begins."""

    def step(self, metrics: Sequence[Mapping[str, Any]], seconds_left: float) -> None:
        """A step is complete; metrics per agent as in `metrics.jsonl`."""


class Silent:
    """An observer that says nothing."""

    def note(self, text: str) -> None: ...

    def phase(self, name: str, step: int) -> None: ...

    def step(self, metrics: Sequence[Mapping[str, Any]], seconds_left: float) -> None: ...

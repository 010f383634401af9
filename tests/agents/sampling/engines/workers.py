"""Workers that need no library, for the processes of engines."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from safetensors.numpy import load_file

from hacrl.agents.sampling.engines.base import Drawn, Request


class NumberWorker:
    """Draws the number that is its model's only weight."""

    def __init__(self, folder: Path, busy: Callable[[], None]) -> None:
        self._folder = folder
        self._number: int | None = None
        self._sleeps = False

    def start(self, sleeps: bool) -> None:
        if not (self._folder / "config.json").is_file():
            raise ValueError("no model\nlies here")
        self._sleeps = sleeps
        self.load()

    def draw(self, requests: Sequence[Request]) -> list[Drawn]:
        assert self._number is not None
        if requests[0].seed == signal.SIGILL:
            os.kill(os.getpid(), signal.SIGILL)
        return [Drawn([self._number, one.seed], [-1.0, -1.0], False, []) for one in requests]

    def load(self) -> None:
        (file,) = self._folder.glob("*.safetensors")
        self._number = int(load_file(file)["number"][0])

    def sleep(self) -> bool:
        if self._sleeps:
            self._number = None
        return self._sleeps

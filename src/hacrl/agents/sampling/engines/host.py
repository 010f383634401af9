"""The process that owns one engine.

Started as `python -m hacrl.agents.sampling.engines.host MODULE:CLASS SOCKET FOLDER`, where the
class is a `Worker`.

Calls come in, answers go out, and in between a word at least once a second that it is still at
work. It ends with the process that started it.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from hacrl.agents.sampling.engines.base import Drawn, Request
from hacrl.errors import first_line

__all__ = ["Worker", "main"]


class Worker(Protocol):
    """The part of an engine that lives in the process. Whatever it raises ends the engine.

    Args:
        folder: holds the model's `config.json` and, during `start` and `load` alone, its weights
            as safetensors.
        busy: to be called at least every few seconds during long work that can.
    """

    def __init__(self, folder: Path, busy: Callable[[], None]) -> None: ...

    def start(self, **options: Any) -> None:
        """See `Engine.start`. The options are those that `HostedEngine` was given."""

    def draw(self, requests: Sequence[Request]) -> list[Drawn]:
        """See `Engine.draw`."""

    def load(self) -> None:
        """See `Engine.load`."""

    def sleep(self) -> bool:
        """See `Engine.sleep`."""


def main(worker: str, socket: int, folder: Path) -> None:
    """Answer calls until the connection is closed."""
    os.set_inheritable(socket, False)
    parent = os.getppid()
    threading.Thread(target=_end_with, args=(parent, folder), daemon=True).start()
    connection = Connection(socket)
    module, _, name = worker.partition(":")
    engine: Worker = getattr(import_module(module), name)(folder, _Busy(connection))
    while True:
        try:
            method, arguments, options = connection.recv()
        except EOFError:
            _end(folder)
        try:
            answer = "answer", getattr(engine, method)(*arguments, **options)
        except Exception as error:  # noqa: BLE001 - whatever it is, the run must hear of it
            traceback.print_exc()  # into the log
            answer = "failure", f"{type(error).__name__}: {first_line(error)}"
        connection.send(answer)


class _Busy:
    """Says that work goes on, at most once a second."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._last = 0.0

    def __call__(self) -> None:
        if time.monotonic() - self._last >= 1.0:
            self._connection.send(("busy", None))
            self._last = time.monotonic()


def _end_with(parent: int, folder: Path) -> None:
    """However the parent ends: a killed one closes nothing as long as others hold its files."""
    while os.getppid() == parent:
        time.sleep(0.5)
    _end(folder)


def _end(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)  # with the engine's workers


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))

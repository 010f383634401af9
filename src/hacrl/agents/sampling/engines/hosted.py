"""An engine in a process of its own, which gets its weights as a file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from torch import Tensor
from transformers import PreTrainedConfig

from hacrl.agents.policy.plain_weights import write_weights
from hacrl.agents.sampling.engines.base import Drawn, EngineError, Request
from hacrl.agents.sampling.engines.process import EngineProcess, WorkerError

__all__ = ["HostedEngine"]

_LOCK = Path(tempfile.gettempdir()) / f"hacrl-engines-{os.getuid()}.lock"
"""Held while an engine starts: engines that start at once would take each other's ports, and each
other's GPU memory for what they use themselves."""


class HostedEngine:
    """Passes everything on to a worker in a process of its own. See `Engine`.

    What the library behind it does to signals, threads, ports and memory, and how it dies, stays
    apart from the run.

    Args:
        name: see `Engine`.
        worker: `MODULE:CLASS` of a `Worker`.
        agent: whose it is, for the keys that messages name.
        seconds: longest silence, the start included.
        options: for the `start` of the worker.
        environment: variables for the process, besides those of this one.
        deaths: by the number of the signal that ended the process, what that means and what to do.
    """

    def __init__(
        self,
        name: str,
        worker: str,
        *,
        agent: str,
        seconds: float,
        options: Mapping[str, Any],
        environment: Mapping[str, str],
        deaths: Mapping[int, str],
    ) -> None:
        self.name = name
        self._worker = worker
        self._agent = agent
        self._seconds = seconds
        self._options = options
        self._environment = environment
        self._deaths = deaths
        self._process: EngineProcess | None = None

    @property
    def process(self) -> EngineProcess:
        """That of the worker, once it has been started."""
        assert self._process is not None
        return self._process

    def start(self, config: PreTrainedConfig, weights: Iterable[tuple[str, Tensor]]) -> None:
        self._process = EngineProcess(
            self._worker,
            seconds=self._seconds,
            longer=f"agents.{self._agent}.sampler.seconds",
            environment=self._environment,
            deaths=self._deaths,
        )
        config.save_pretrained(self._process.folder)
        file = write_weights(weights, self._process.folder)
        try:
            with FileLock(_LOCK, timeout=self._seconds):
                self._process.call("start", **self._options)
        except WorkerError as error:
            raise EngineError(
                f"{error}; change its settings, or use agents.{self._agent}.sampler: hf"
            ) from error
        except Timeout as error:
            self.close()
            raise EngineError(
                f"other engines have been starting for {self._seconds:g} s; try again, or raise "
                f"agents.{self._agent}.sampler.seconds"
            ) from error
        file.unlink()

    def draw(self, requests: Sequence[Request]) -> list[Drawn]:
        drawn: list[Drawn] = self.process.call("draw", list(requests))
        return drawn

    def load(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        file = write_weights(weights, self.process.folder)
        self.process.call("load")
        file.unlink()

    def sleep(self) -> bool:
        return bool(self.process.call("sleep"))

    def close(self) -> None:
        if self._process is not None:
            self._process.close()

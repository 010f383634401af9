"""A vLLM engine in a process of its own, as seen from the process that uses it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from hacrl.agents.sampling.vllm.messages import Drawn, Request
from hacrl.errors import UserError

__all__ = ["VllmClient"]

_LOCK = Path(tempfile.gettempdir()) / f"hacrl-vllm-{os.getuid()}.lock"
"""Held while an engine starts: engines that start at once would take each other's ports, and each
other's GPU memory for what they use themselves."""


class VllmClient:
    """Starts an engine, passes it work, and never waits for it without end.

    Nothing of the engine outlives this object or the process that it is in, however that ends.

    Args:
        agent: whose it is, for messages.
        seconds: longest silence of the engine.
        environment: variables for its process, besides those of this one.

    Attributes:
        folder: for files that both sides see; gone with the engine.
    """

    def __init__(self, agent: str, seconds: float, environment: Mapping[str, str]) -> None:
        self._agent = agent
        self._seconds = seconds
        self.folder = Path(tempfile.mkdtemp(prefix="hacrl-vllm-"))
        self._log = self.folder / "engine.log"
        ours, theirs = socket.socketpair()
        with theirs, self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "hacrl.agents.sampling.vllm.engine"),
                    *(str(theirs.fileno()), str(self.folder)),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the run, which ends its phase first
                env={**os.environ, **environment},
            )
        self._connection = Connection(ours.detach())
        self._end = weakref.finalize(self, _end, self._process, self._connection, self.folder)

    @property
    def pid(self) -> int:
        """Of the engine's process, which leads a process group of its own."""
        return self._process.pid

    def start(
        self, options: Mapping[str, Any], *, cpu: Mapping[str, Any], gpu: Mapping[str, Any]
    ) -> bool:
        """Make the engine.

        Args:
            options: of `vllm.LLM`.
            cpu: further ones, for an engine on a CPU.
            gpu: likewise elsewhere.

        Returns:
            Whether it runs on a CPU.

        Raises:
            UserError: vLLM cannot be imported, or cannot serve this model here.
        """
        try:
            with FileLock(_LOCK, timeout=self._seconds):
                return bool(
                    self._call(
                        *("start", dict(options), dict(cpu), dict(gpu)),
                        remedy=f"; change its settings, or use agents.{self._agent}.sampler: hf",
                    )
                )
        except Timeout as error:
            raise self._fail(
                f"other engines have been starting for {self._seconds:g} s; try again, or raise "
                f"{self._key('seconds')}"
            ) from error

    def draw(self, requests: Sequence[Request]) -> list[Drawn]:
        """Responses to requests, in their order. All blocks of the prefix cache are new.

        Raises:
            UserError: the engine has failed.
        """
        found: list[Drawn] = self._call("draw", list(requests))
        return found

    def load(self) -> None:
        """Take the weights that lie in the folder, and remove them from there; wake up before.

        Raises:
            UserError: the engine has failed.
        """
        self._call("load")

    def sleep(self) -> None:
        """Free weights and cache until the next `load`.

        Raises:
            UserError: the engine has failed.
        """
        self._call("sleep")

    def close(self) -> None:
        """End the engine."""
        self._end()

    def _call(self, name: str, *arguments: object, remedy: str = "") -> Any:
        try:
            self._connection.send((name, arguments))
            return self._answer(remedy)
        except (EOFError, OSError) as error:
            raise self._died() from error

    def _answer(self, remedy: str) -> Any:
        silent_since = time.monotonic()
        while (left := silent_since + self._seconds - time.monotonic()) > 0:
            if self._connection.poll(min(left, 1.0)):
                kind, value = self._connection.recv()
                if kind == "answer":
                    return value
                if kind == "failure":
                    raise self._fail(f"{value}{remedy}")
                silent_since = time.monotonic()
            elif self._process.poll() is not None:
                raise EOFError
        raise self._fail(
            f"it has not answered for {self._seconds:g} s and was ended; if it only needs longer, "
            f"raise {self._key('seconds')}"
        )

    def _died(self) -> UserError:
        try:
            code = self._process.wait(timeout=10.0)
        except subprocess.TimeoutExpired:
            return self._fail("it has closed its connection")
        if code == -signal.SIGKILL:
            return self._fail(
                f"it was killed, most likely for lack of memory; lower {self._key('cpu_cache')} or "
                f"{self._key('gpu_memory_utilization')}, or use a smaller model"
            )
        if code == -signal.SIGILL:
            return self._fail(
                "its kernels for this model do not run on this processor; set "
                f"{self._key('dtype')}: float32, or use agents.{self._agent}.sampler: hf"
            )
        lines = self._log.read_text("utf-8", errors="replace").strip().splitlines()
        last = f"; its last words: {lines[-1]}" if lines else ""
        return self._fail(f"it has ended with code {code}{last}")

    def _fail(self, what: str) -> UserError:
        self.close()
        return UserError(f"agent {self._agent}: vLLM engine: {what}")

    def _key(self, name: str) -> str:
        return f"agents.{self._agent}.sampler.{name}"


def _end(process: subprocess.Popen[bytes], connection: Connection, folder: Path) -> None:
    connection.close()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # with the engine's workers
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)

"""Sides that take turns: each in a process of its own, one step at a time."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu.meter import Phase

__all__ = ["Server", "Side", "Turn", "alternate", "running", "seconds", "serve"]

Server = Callable[["Side", Any], None]
"""Sets up one side and works through its turns; the second argument is what it works on."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one step took. `cpu` is the processor time of the process, which other processes on
    the machine disturb less than `wall`; `peak` the most memory it has ever held, in MiB; `phases`
    what its parts took, where the side measures them."""

    wall: float
    cpu: float
    peak: float
    phases: Mapping[str, Phase] = field(default_factory=dict)


class Side:
    """The worker's end of the wire."""

    def __init__(self, wire: Connection) -> None:
        self._wire = wire
        self._begun = (0.0, 0.0)

    def wait(self) -> bool:
        """Wait for one's turn, with the threads that it allows; false when there are no more."""
        threads: int = self._wire.recv()
        if threads:
            torch.set_num_threads(threads)
        self._begun = (time.perf_counter(), time.process_time())
        return threads > 0

    def done(self, phases: Mapping[str, Phase] | None = None) -> None:
        """Report the turn that `wait` began."""
        wall, cpu = time.perf_counter() - self._begun[0], time.process_time() - self._begun[1]
        self._wire.send(Turn(wall, cpu, _peak(), phases or {}))


def _peak() -> float:
    """Of this program, in MiB. `ru_maxrss` would count what its parent held before this began."""
    status = Path("/proc/self/status").read_text("ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def serve(side: Side, step: Callable[[], object]) -> None:
    """Do one step a turn."""
    while side.wait():
        step()
        side.done()


@contextmanager
def running(sides: Mapping[str, tuple[Server, Any]]) -> Iterator[dict[str, Connection]]:
    """Start every side in a fresh process."""
    os.environ["OMP_NUM_THREADS"] = "1"  # read by the children as they import torch
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    context = multiprocessing.get_context("spawn")
    wires, processes = {}, []
    for name, (server, work) in sides.items():
        here, there = context.Pipe()
        process = context.Process(target=_work, args=(there, server, work), daemon=True)
        process.start()
        there.close()
        wires[name] = here
        processes.append(process)
    try:
        yield wires
        for wire in wires.values():
            wire.send(0)
    finally:
        for process in processes:
            process.join(10)
            process.terminate()


def _work(wire: Connection, server: Server, work: Any) -> None:
    server(Side(wire), work)


def alternate(
    wires: Mapping[str, Sequence[Connection]],
    rounds: int,
    warmup: int = 1,
    threads: Mapping[str, int] | None = None,
) -> dict[str, list[Turn]]:
    """Turns of each side, `rounds` each after `warmup`; the order changes from round to round.

    Args:
        wires: of each side; of several processes that do their step at once, all of them.
        threads: of each process of a side, 1 where it is not named.
    """
    allowed = threads or {}
    turns: dict[str, list[Turn]] = {name: [] for name in wires}
    for number in range(-warmup, rounds):
        for name in list(wires) if number % 2 else list(wires)[::-1]:
            for wire in wires[name]:
                wire.send(allowed.get(name, 1))
            taken: list[Turn] = [wire.recv() for wire in wires[name]]
            if number >= 0:
                turns[name].append(
                    Turn(
                        wall=max(turn.wall for turn in taken),
                        cpu=sum(turn.cpu for turn in taken),
                        peak=sum(turn.peak for turn in taken),
                    )
                )
    return turns


def seconds(turns: Sequence[Turn]) -> dict[str, float]:
    """Median, least and most wall time of a step, its median processor time, and peak memory."""
    walls = [turn.wall for turn in turns]
    return {
        "median": round(statistics.median(walls), 4),
        "min": round(min(walls), 4),
        "max": round(max(walls), 4),
        "cpu_median": round(statistics.median(turn.cpu for turn in turns), 4),
        "peak_mib": round(turns[-1].peak),
    }

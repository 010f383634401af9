"""One agent in a process of its own. A plain class; `hacrl.fleet.ray` makes an actor of it."""

from __future__ import annotations

import dataclasses
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
import torch

from hacrl.agents.agent import Agent
from hacrl.agents.reporting import LearnReport, LessonRecord
from hacrl.config import Recipe
from hacrl.records import Decoding, Prompt
from hacrl.records_arrow import (
    LESSONS,
    ROLLOUTS,
    PoolColumns,
    from_columns,
    from_table,
    to_table,
)
from hacrl.terminal import quieten_libraries

__all__ = ["NotLoaded", "Place", "ReportColumns", "Worker"]


class NotLoaded(Exception):  # noqa: N818 - says what this process does not know
    """The process is a new one in place of another, of which it knows nothing."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a worker is, by names for people and Ray's id of the node, whether it sees a file of
    the controller's, and the numbers of the GPUs that it has or shares."""

    host: str
    node: str
    process: int
    sees: bool
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportColumns:
    """A `LearnReport` with its lessons in columns, as in `LESSONS`."""

    report: LearnReport
    lessons: Any

    @classmethod
    def of(cls, report: LearnReport) -> ReportColumns:
        """The columns of a report."""
        return cls(dataclasses.replace(report, lessons=()), to_table(report.lessons, LESSONS))

    def records(self) -> LearnReport:
        """The report that `of` was given."""
        lessons = tuple(from_table(self.lessons, LessonRecord))
        return dataclasses.replace(self.report, lessons=lessons)


class Worker:
    """Holds the agent of a name and passes on what it is asked. See `Agent`.

    Records come and go as columns; see `hacrl.records_arrow`. All but `start` raise `NotLoaded` in
    a process that has been restarted.

    Args:
        folder: working directory of the controller, to which paths in the recipe are relative.
        threads: CPU threads.
    """

    def __init__(self, name: str, recipe: Recipe, folder: str, threads: int) -> None:
        self._name = name
        self._recipe = recipe
        self._loaded: Agent | None = None
        if os.path.isdir(folder):
            os.chdir(folder)
        torch.set_num_threads(threads)
        quieten_libraries()

    def start(self, checkpoint: Path | None, probe: Path, *, anew: bool) -> Place:
        """Bring the agent to where it begins or goes on. Can be repeated.

        Args:
            checkpoint: where its own is; None leaves it as it is loaded.
            probe: a file that exists where the controller is.
            anew: load it from the recipe even if it is there.

        Raises:
            UserError: the model cannot be loaded, or the checkpoint cannot be read.
        """
        context = ray.get_runtime_context()
        place = Place(
            socket.gethostname(),
            context.get_node_id(),
            os.getpid(),
            probe.exists(),
            tuple(context.get_accelerator_ids().get("GPU", ())),
        )
        if not place.sees:
            return place
        if anew or self._loaded is None:
            self._loaded = None  # before the next one takes memory
            self._loaded = Agent.from_recipe(self._name, self._recipe)
        if checkpoint is not None:
            self._loaded.restore(checkpoint)
        return place

    def positions(self) -> int | None:
        return self._agent.positions

    def prompt_lengths(self, prompts: Any) -> list[int]:
        return self._agent.prompt_lengths(from_table(prompts, Prompt))

    def sample(
        self, prompts: Any, group_size: int, occasion: str, decoding: Decoding | None
    ) -> Any:
        """The responses as a table, as in `ROLLOUTS`."""
        rollouts = self._agent.sample(
            from_table(prompts, Prompt), group_size, occasion=occasion, decoding=decoding
        )
        return to_table(rollouts, ROLLOUTS)

    def learn(self, pool: PoolColumns, omega: Sequence[Sequence[float]]) -> ReportColumns:
        return ReportColumns.of(self._agent.learn(from_columns(pool), omega))

    def save(self, folder: Path) -> None:
        self._agent.save(folder)

    def checkpoint(self, folder: Path) -> None:
        self._agent.checkpoint(folder)

    @property
    def _agent(self) -> Agent:
        if self._loaded is None:
            raise NotLoaded
        return self._loaded

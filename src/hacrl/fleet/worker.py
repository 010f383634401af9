"""One agent in a process of its own. A plain class; `hacrl.fleet.ray` makes an actor of it."""

from __future__ import annotations

import dataclasses
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import ray
import torch
from torch import distributed
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # documented there

from hacrl.agents.learning.reporting import LearnReport, LessonRecord
from hacrl.agents.making import make_participant
from hacrl.agents.participant import LearningParticipant, Participant
from hacrl.agents.policy.loading import find_device
from hacrl.agents.policy.reading import Reading
from hacrl.agents.policy.sharding import Share
from hacrl.columns import LESSONS, ROLLOUTS, from_table, to_table
from hacrl.config import Recipe
from hacrl.console.terminal import quieten_libraries
from hacrl.errors import first_line
from hacrl.fleet.columns import PoolColumns, from_columns
from hacrl.fleet.machine import machine
from hacrl.records import Decoding, Prompt

__all__ = ["NotLoaded", "Place", "RankSilent", "ReportColumns", "Worker"]


class NotLoaded(Exception):  # noqa: N818 - says what this process does not know
    """The process is a new one in place of another, of which it knows nothing."""


class RankSilent(Exception):  # noqa: N818 - says what another did
    """Another rank of the agent is gone, or too late."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a worker is, by names for people and Ray's id of the node, whether it sees a file of
    the controller's, the numbers of the GPUs that it has or shares, and what
    `hacrl.fleet.machine` says there."""

    host: str
    node: str
    process: int
    sees: bool
    devices: tuple[str, ...] = ()
    machine: Mapping[str, str] = field(default_factory=dict)


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
    """Holds the agent of a name and passes on what it is asked. See `hacrl.agents.participant`.

    Records come and go as columns; see `hacrl.columns`. All but `start` raise `NotLoaded` in
    a process that has been restarted.

    Args:
        folder: working directory of the controller, to which paths in the recipe are relative.
        threads: CPU threads.
        rank: of the agent's ranks, which this process is.
    """

    def __init__(self, name: str, recipe: Recipe, folder: str, threads: int, rank: int = 0) -> None:
        self._name = name
        self._recipe = recipe
        self._share = Share(rank, recipe.models[name].ranks)
        self._store: TCPStore | None = None
        self._loaded: Participant | None = None
        if os.path.isdir(folder):
            os.chdir(folder)
        torch.set_num_threads(threads)
        quieten_libraries()

    def meeting_point(self) -> tuple[str, int]:
        """Where the ranks of the agent find each other: host and port, here."""
        host = ray.util.get_node_ip_address()
        self._store = TCPStore(
            host, 0, self._share.size, is_master=True, wait_for_workers=False, timeout=self._limit
        )
        return host, self._store.port

    def place(self, probe: Path) -> Place:
        """Where this process is.

        Args:
            probe: a file that exists where the controller is.
        """
        context = ray.get_runtime_context()
        return Place(
            socket.gethostname(),
            context.get_node_id(),
            os.getpid(),
            probe.exists(),
            tuple(context.get_accelerator_ids().get("GPU", ())),
            machine(),
        )

    def start(
        self,
        checkpoint: Path | None,
        probe: Path,
        *,
        anew: bool,
        meeting: tuple[str, int] | None = None,
    ) -> Place:
        """Bring the agent to where it begins or goes on. Can be repeated.

        Args:
            checkpoint: where its own is; None leaves it as it is loaded.
            probe: see `place`.
            anew: load it from the recipe even if it is there.
            meeting: see `meeting_point`; None for an agent of one rank.

        Raises:
            UserError: the model cannot be loaded, or the checkpoint cannot be read.
        """
        place = self.place(probe)
        if not place.sees:
            return place
        with self._with_others():
            if meeting is not None and not distributed.is_initialized():
                self._meet(*meeting)
            if anew or self._loaded is None:
                self._loaded = None  # before the next one takes memory
                self._loaded = make_participant(self._name, self._recipe, share=self._share)
            if checkpoint is not None:
                self._learner.restore(checkpoint)
        return place

    def positions(self) -> int | None:
        return self._agent.positions

    def prompt_lengths(self, prompts: Any) -> list[int]:
        return self._agent.prompt_lengths(from_table(prompts, Prompt))

    def read(self, prompts: Any) -> Reading:
        return self._agent.read(from_table(prompts, Prompt))

    def sample(
        self, prompts: Any, group_size: int, occasion: str, decoding: Decoding | None
    ) -> Any:
        """The responses as a table, as in `ROLLOUTS`, by the first rank for all."""
        with self._with_others():
            rollouts = self._agent.sample(
                from_table(prompts, Prompt), group_size, occasion=occasion, decoding=decoding
            )
        return to_table(rollouts, ROLLOUTS) if self._share.rank == 0 else None

    def learn(
        self, pool: PoolColumns, advantage: Mapping[str, Sequence[Sequence[float]]]
    ) -> ReportColumns | None:
        """What the first rank reports, for all."""
        with self._with_others():
            report = self._learner.learn(from_columns(pool), advantage)
        return ReportColumns.of(report) if self._share.rank == 0 else None

    def save(self, folder: Path) -> None:
        with self._with_others():
            self._learner.save(folder)

    def checkpoint(self, folder: Path) -> None:
        with self._with_others():
            self._learner.checkpoint(folder)

    @contextmanager
    def _with_others(self) -> Iterator[None]:
        """Tell the silence of another rank from errors of this one."""
        try:
            yield
        except RuntimeError as error:  # gloo has no class of its own
            if isinstance(error, distributed.DistError) or "gloo" in str(error).lower():
                raise RankSilent(first_line(error)) from error
            raise

    def _meet(self, host: str, port: int) -> None:
        share = self._share
        device = find_device(self._name, self._recipe.models[self._name].device)
        if device.type != "cpu":
            torch.accelerator.set_device_index(0)  # a rank sees its own device alone
        store = self._store or TCPStore(
            host, port, share.size, is_master=False, timeout=self._limit
        )
        distributed.init_process_group(
            backend="gloo" if device.type == "cpu" else f"cpu:gloo,{device.type}:nccl",
            store=store,
            rank=share.rank,
            world_size=share.size,
            timeout=self._limit,
        )

    @property
    def _limit(self) -> timedelta:
        """Of one wait for others. The fleet's own limits of each phase come first."""
        fleet = self._recipe.fleet
        return timedelta(seconds=max(fleet.seconds, fleet.start_seconds))

    @property
    def _agent(self) -> Participant:
        if self._loaded is None:
            raise NotLoaded
        return self._loaded

    @property
    def _learner(self) -> LearningParticipant:
        agent = self._agent
        assert isinstance(agent, LearningParticipant)  # others are not asked
        return agent

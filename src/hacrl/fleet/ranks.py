"""The actors of one agent, one for each of its ranks, asked together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from hacrl.fleet.worker import RankSilent

__all__ = ["RankError", "Ranks", "wait"]

_GRACE = 5.0
"""Seconds in which the rank that is to blame may be found, once another has failed."""


class RankError(Exception):
    """What a rank failed with, or its silence.

    Args:
        rank: which.
        error: Ray's.
    """

    def __init__(self, rank: int, error: RayError) -> None:
        super().__init__(f"rank {rank}: {error}")
        self.rank = rank
        self.error = error


class Ranks:
    """Actors that together are one agent.

    Args:
        make: the actor of a rank, given Ray's options for where it is placed.
        wanted: options that say what one rank takes of the cluster.
        size: number of ranks. More than one are placed all together or not at all.
    """

    def __init__(
        self, make: Callable[[int, dict[str, Any]], Any], wanted: dict[str, Any], size: int
    ) -> None:
        self._lock = threading.Lock()
        self._make = make
        self._wanted = wanted
        self._group: PlacementGroup | None = None
        self._started = False
        self.size = size
        if size > 1:
            label = wanted.pop("label_selector", None)
            bundle = {"CPU": wanted["num_cpus"], "GPU": wanted["num_gpus"], **wanted["resources"]}
            bundle = {kind: amount for kind, amount in bundle.items() if amount}
            labels = {"bundle_label_selector": [label] * size} if label else {}
            self._group = placement_group([bundle] * size, strategy="PACK", **labels)
        self.actors = self._place()

    def ask(self, call: Callable[[Any], Any]) -> list[Any]:
        """Ask all ranks, and get what `wait` takes.

        Two threads ask in the same order on every rank, which collective work depends on.
        """
        with self._lock:
            return [call(actor) for actor in self.actors]

    def start(self, checkpoint: Any, probe: Any, *, anew: bool) -> list[Any]:
        """See `Worker.start`. Ray repeats that of a single rank if its process ends meanwhile."""
        with self._lock:
            meeting = None
            if self.size > 1:
                if self._started:  # no communicator of before must be left in any process
                    self.end_processes()
                    self.actors = self._place()
                # Ray hands it to the others as soon as it is known.
                meeting = self.actors[0].meeting_point.remote()
            self._started = True
            return [
                actor.start.options(max_task_retries=-1 if self.size == 1 else 0).remote(
                    checkpoint, probe, anew=anew, meeting=meeting
                )
                for actor in self.actors
            ]

    def end_processes(self) -> None:
        """End all processes, lest one of them hang. Ray starts a single one anew, `start` several."""
        for actor in self.actors:
            ray.kill(actor, no_restart=self.size > 1)

    def end(self) -> None:
        """End all for good."""
        for actor in self.actors:
            ray.kill(actor)
        if self._group is not None:
            remove_placement_group(self._group)

    def _place(self) -> list[Any]:
        if self._group is None:
            return [self._make(0, self._wanted)]
        return [
            self._make(
                rank,
                self._wanted
                | {
                    "max_restarts": 0,  # one alone would find nobody to meet
                    "scheduling_strategy": PlacementGroupSchedulingStrategy(self._group, rank),
                },
            )
            for rank in range(self.size)
        ]


def wait(calls: Sequence[Any], seconds: float) -> list[Any]:
    """What all ranks answer, in their order.

    Raises:
        RankError: one failed, or did not answer in time. Of several, one that ended by itself.
    """
    deadline = time.monotonic() + seconds
    errors: dict[int, RayError] = {}
    answers: dict[int, Any] = {}
    waiting = {call: rank for rank, call in enumerate(calls)}
    while waiting:
        done, _ = ray.wait(list(waiting), timeout=max(deadline - time.monotonic(), 0.0))
        if not done:
            break
        rank = waiting.pop(done[0])
        try:
            answers[rank] = ray.get(done[0])
        except RayError as error:
            errors[rank] = error
            if not _by_another(error):
                break
            deadline = min(deadline, time.monotonic() + _GRACE)
    if errors:
        rank = min(errors, key=lambda one: (_by_another(errors[one]), one))
        raise RankError(rank, errors[rank])
    if waiting:
        raise RankError(min(waiting.values()), GetTimeoutError(f"no answer in {seconds:g} s"))
    return [answers[rank] for rank in range(len(calls))]


def _by_another(error: RayError) -> bool:
    return isinstance(getattr(error, "cause", None), RankSilent)

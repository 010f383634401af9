"""The actors of one agent, one for each of its ranks, asked together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from hacrl.fleet.losses import is_loss
from hacrl.fleet.worker import RankSilent

__all__ = ["FETCH", "Asked", "RankError", "Ranks", "blame"]

FETCH = 1.0
"""Seconds in which an answer that was given may come from another node."""
_GRACE = 30.0
"""Seconds in which the other ranks may answer, once one has failed."""


class RankError(Exception):
    """What an agent failed with, or its silence.

    Args:
        rank: of several, the one that is to blame; None if that is not known, or there is one.
        error: Ray's.
    """

    def __init__(self, rank: int | None, error: RayError) -> None:
        super().__init__(str(error) if rank is None else f"rank {rank}: {error}")
        self.rank = rank
        self.error = error


class Ranks:
    """Actors that together are one agent. More than one are placed all together or not at all.

    Args:
        make: the actor of a rank, given Ray's options for where it is placed.
        wanted: options that say what one rank takes of the cluster.
        size: number of ranks.
    """

    def __init__(
        self, make: Callable[[int, dict[str, Any]], Any], wanted: dict[str, Any], size: int
    ) -> None:
        self._lock = threading.Lock()
        self._make = make
        self._wanted = wanted
        self._group: PlacementGroup | None = None
        self._ended = False
        self._arrivals: list[Any] = []
        self.size = size
        if size > 1:
            label = wanted.pop("label_selector", None)
            bundle = {"CPU": wanted["num_cpus"], "GPU": wanted["num_gpus"], **wanted["resources"]}
            bundle = {kind: amount for kind, amount in bundle.items() if amount}
            labels = {"bundle_label_selector": [label] * size} if label else {}
            self._group = placement_group([bundle] * size, strategy="PACK", **labels)
        self._place()

    def ask(self, call: Callable[[Any], Any]) -> Asked:
        """Ask all ranks.

        Two threads ask in the same order on every rank, which collective work depends on.
        """
        with self._lock:
            return Asked(self, self._actors, [call(actor) for actor in self._actors])

    def start(self, checkpoint: Any, probe: Any, *, anew: bool) -> Asked:
        """See `Worker.start`. Several ranks are made anew if they were ended.

        Ray itself repeats the start of a single one whose process ends meanwhile.
        """
        with self._lock:
            if self._ended:
                self._place()
                self._ended = False
            repeats = {"max_task_retries": -1 if self.size == 1 else 0}
            self._arrivals = [
                actor.place.options(**repeats).remote(probe) for actor in self._actors
            ]
            calls = [
                actor.start.options(**repeats).remote(
                    checkpoint, probe, anew=anew, meeting=self._meeting
                )
                for actor in self._actors
            ]
            return Asked(self, self._actors, calls)

    def arrived(self) -> list[Any]:
        """The `Place` of each rank as far as it has one since `start`, None of the others."""
        places = []
        for call in self._arrivals:
            done, _ = ray.wait([call], timeout=FETCH)
            place = _answer(call) if done else None
            places.append(None if isinstance(place, RayError) else place)
        return places

    def end_processes(self, actors: list[Any]) -> None:
        """End the processes of some that were asked: they hang, or are out of step.

        Ray starts a single one anew at once, `start` several.
        """
        with self._lock:
            for actor in actors:
                ray.kill(actor, no_restart=self.size > 1)
            if self.size > 1 and actors is self._actors:
                self._ended = True

    def end(self) -> None:
        """End all for good."""
        for actor in self._actors:
            ray.kill(actor)
        if self._group is not None:
            remove_placement_group(self._group)

    def _place(self) -> None:
        if self._group is None:
            self._actors = [self._make(0, self._wanted)]
            self._meeting = None
            return
        self._actors = [
            self._make(
                rank,
                self._wanted
                | {
                    "max_restarts": 0,  # one alone would find no other rank
                    "scheduling_strategy": PlacementGroupSchedulingStrategy(self._group, rank),
                },
            )
            for rank in range(self.size)
        ]
        # Ray hands it to the others as soon as it is known.
        self._meeting = self._actors[0].meeting_point.remote()


@dataclass(frozen=True, slots=True)
class Asked:
    """A call to all ranks of an agent, under way."""

    ranks: Ranks
    actors: list[Any]
    calls: list[Any]

    def decided(self, seconds: float) -> bool:
        """Whether all have answered or one has failed, after so many seconds at most."""
        done, left = ray.wait(self.calls, num_returns=len(self.calls), timeout=seconds)
        return not left or any(isinstance(_answer(call), RayError) for call in done)

    def wait(self, seconds: float) -> list[Any]:
        """What all ranks answer, in their order.

        Raises:
            RankError: one failed, or did not answer in time. Processes that hang, or are out of
                step with one that failed, have been ended.
        """
        deadline = time.monotonic() + seconds
        answers: dict[int, Any] = {}
        errors: dict[int, RayError] = {}
        waiting = {call: rank for rank, call in enumerate(self.calls)}
        while waiting:
            done, _ = ray.wait(list(waiting), timeout=max(deadline - time.monotonic(), 0.0))
            if not done:
                break
            rank = waiting.pop(done[0])
            answers[rank] = answer = _answer(done[0])
            if isinstance(answer, RayError):
                errors[rank] = answer
                if not isinstance(answer, RayTaskError):  # the process is gone
                    break
                deadline = min(deadline, time.monotonic() + _GRACE)
        if not waiting and not errors:
            return [answers[rank] for rank in range(len(self.calls))]
        failed = blame(errors, list(waiting.values()), seconds)
        several = self.ranks.size > 1
        if isinstance(failed.error, GetTimeoutError) or (
            several and (waiting or is_loss(failed.error))
        ):
            self.ranks.end_processes(self.actors)
        raise failed if several else RankError(None, failed.error)


def _answer(call: Any) -> Any:
    """What a call that is done has given, or Ray's error."""
    try:
        return ray.get(call)
    except RayError as error:
        return error


def blame(errors: Mapping[int, RayError], silent: list[int], seconds: float) -> RankError:
    """Who is most likely the cause, when ranks have failed or are silent."""
    own = [rank for rank, error in errors.items() if not _by_another(error)]
    if own:
        rank = min(own, key=lambda number: (isinstance(errors[number], RayTaskError), number))
        return RankError(rank, errors[rank])
    if errors:
        return RankError(None, next(iter(errors.values())))
    late = GetTimeoutError(f"no answer in {seconds:g} s")
    return RankError(silent[0] if len(silent) == 1 else None, late)


def _by_another(error: RayError) -> bool:
    return isinstance(getattr(error, "cause", None), RankSilent)

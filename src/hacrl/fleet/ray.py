"""Agents as actors on a Ray cluster, at work at the same time."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import ray
from ray.exceptions import GetTimeoutError

from hacrl.agents.learning.reporting import LearnReport
from hacrl.agents.making import make_participant
from hacrl.agents.participant import Participant
from hacrl.agents.policy.reading import Reading
from hacrl.columns import PROMPTS, from_table, to_table
from hacrl.config import Recipe
from hacrl.errors import UserError, first_line
from hacrl.fleet import cluster, placing
from hacrl.fleet.absence import Absences
from hacrl.fleet.base import AgentLost, ByLearner
from hacrl.fleet.columns import to_columns
from hacrl.fleet.guard import Guard
from hacrl.fleet.losses import Loss, is_loss, likely_cause, own_error
from hacrl.fleet.ranks import FETCH, Asked, RankError, Ranks
from hacrl.fleet.turns import turns
from hacrl.fleet.worker import Place, Worker
from hacrl.records import Decoding, Pool, Prompt, Rollout
from hacrl.runs.checkpoints import checkpoints

__all__ = ["RayFleet"]

T = TypeVar("T")

_SAVING = "saving"
"""The concurrency group of checkpoints, which are written while the agent samples."""

# Ray's types do not know of concurrency groups.
_Actor: Any = ray.remote(max_restarts=-1, concurrency_groups={_SAVING: 1})(Worker)  # type: ignore[call-overload]


class RayFleet:
    """Agents on a Ray cluster. See `Fleet`. A context manager.

    Ray places the agents and restarts their processes. Every call has a time limit. When an agent
    is lost before the first responses, that is an error of the recipe or the cluster; later,
    `AgentLost` is raised and `start` brings all agents back, or the others go on without it, as
    `fleet.on_peer_failure` says.

    Args:
        run: absolute path of the run folder, which every node of the cluster must see.
        note: called with lines worth showing, from any thread.

    Attributes:
        places: where each agent is, or was last; of several ranks, the first.
        rank_places: likewise, all ranks of each agent.

    Raises:
        UserError: there is no cluster at the address, or none can be started.
    """

    def __init__(self, recipe: Recipe, run: Path, note: Callable[[str], None]) -> None:
        self._recipe = recipe
        self._run = run
        self._note = note
        # They are data, and need no process.
        self._recorded = {name: make_participant(name, recipe) for name in recipe.recordings}
        self._connection = cluster.connect(recipe, note)
        self._guard = Guard() if self._connection == "own" else None
        self._actors: dict[str, Ranks] = {}
        self.places: dict[str, Place] = {}
        self.rank_places: dict[str, list[Place]] = {}
        self._begun = False
        self._probe = run.parent / f".{run.name}.probe"
        self._absences = Absences(
            recipe.fleet.retries, lambda name: self._start(name, None), self._why_not_back, note
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._probe.unlink(missing_ok=True)
        for ranks in self._actors.values():
            ranks.end()
        if self._connection != "found":
            ray.shutdown()
        if self._guard is not None:
            self._guard.close()

    def start(self, checkpoint: Path | None) -> Self:
        """Bring every agent to a joint checkpoint, or to the recipe's models if that is None.

        Raises:
            UserError: an agent gets no place, its model cannot be loaded, the checkpoint does not
                fit, or a node does not see the run folder.
        """
        if not self._actors:
            self._check_room()
            self._actors = {name: self._place(name) for name in self._models}
        self._absences.clear()
        self._run.parent.mkdir(parents=True, exist_ok=True)
        self._probe.touch()
        placed: Mapping[str, list[Place]] = self._ask_ranks(
            "start",
            self._models,
            lambda name: self._start(name, checkpoint),
            seconds=self._recipe.fleet.start_seconds,
        )
        self._note_places(placed)
        for name, place in ((name, place) for name, places in placed.items() for place in places):
            if not place.sees:
                raise UserError(
                    f"agent {name}: its node {place.host} does not see {self._run.parent}; put "
                    "the run folder on a file system that all nodes share, with --runs DIR"
                )
        return self

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(self._recipe.agents)

    @property
    def learners(self) -> tuple[str, ...]:
        return tuple(self._recipe.learners)

    def machines(self) -> dict[str, Mapping[str, str]]:
        return {name: place.machine for name, place in self.places.items()}

    def positions(self) -> dict[str, int | None]:
        limit = self._recipe.fleet.start_seconds
        here = self._present(self._models)
        asked = self._ask("start", here, lambda _, actor: actor.positions.remote(), limit)
        return self._with_recorded(asked, lambda recording: recording.positions)

    def prompt_lengths(self, prompts: Sequence[Prompt]) -> dict[str, list[int]]:
        table = cluster.share(to_table(prompts, PROMPTS), "the prompts")
        limit = self._recipe.fleet.start_seconds
        here = self._present(self._models)
        asked = self._ask("start", here, lambda _, actor: actor.prompt_lengths.remote(table), limit)
        return self._with_recorded(asked, lambda recording: recording.prompt_lengths(prompts))

    def read(self, prompts: Sequence[Prompt]) -> dict[str, Reading]:
        table = cluster.share(to_table(prompts, PROMPTS), "the prompts")
        limit = self._recipe.fleet.start_seconds
        here = self._present(self._models)
        asked = self._ask("start", here, lambda _, actor: actor.read.remote(table), limit)
        return self._with_recorded(asked, lambda recording: recording.read(prompts))

    def sample(
        self,
        prompts: Sequence[Prompt],
        group_size: int,
        *,
        occasion: str,
        decoding: Decoding | None = None,
        agents: Sequence[str] | None = None,
    ) -> dict[str, list[Rollout]]:
        self._begun = True
        self._take_back()
        table = cluster.share(to_table(prompts, PROMPTS), "the prompts")
        wanted = self.agents if agents is None else agents
        tables = self._ask(
            "sample" if decoding is None else "evaluate",
            self._present(name for name in self._models if name in wanted),
            lambda _, actor: actor.sample.remote(table, group_size, occasion, decoding),
        )
        drawn = {name: from_table(own, Rollout) for name, own in tables.items()}
        return self._with_recorded(
            drawn,
            lambda recording: recording.sample(
                prompts, group_size, occasion=occasion, decoding=decoding
            ),
            wanted,
        )

    def learn(self, pool: Pool, advantages: ByLearner) -> list[LearnReport]:
        # Once; every learner of a node reads the same memory.
        columns = cluster.share(to_columns(pool), "the responses of a step")
        reports = self._ask(
            "learn",
            self._present(advantages),
            lambda name, actor: actor.learn.remote(columns, advantages[name]),
        )
        return [report.records() for report in reports.values()]

    def save(self, folder: Path) -> None:
        self._take_back(self._recipe.fleet.start_seconds)
        self._write("save", folder, lambda own, actor: actor.save.remote(own))

    def checkpoint(self, folder: Path) -> None:
        def begin(own: Path, actor: Any) -> Any:
            if self._actors[own.name].size > 1:  # all ranks write, between two works of all ranks
                return actor.checkpoint.remote(own)
            return actor.checkpoint.options(concurrency_group=_SAVING).remote(own)

        self._write("checkpoint", folder, begin)

    def restore(self, folder: Path) -> None:
        self.start(folder)

    def _place(self, name: str) -> Ranks:
        wanted = placing.options(self._recipe, name)
        threads = placing.threads(self._recipe, name)

        def make(rank: int, options: dict[str, Any]) -> Any:
            actor = _Actor.options(**options)
            return actor.remote(name, self._recipe, str(Path.cwd()), threads, rank)

        try:
            return Ranks(make, wanted, self._recipe.models[name].ranks)
        except ValueError as error:  # such as a label that Ray cannot read
            raise UserError(f"agents.{name}.resources: {first_line(error)}") from error

    def _check_room(self) -> None:
        """Wait for nodes where some may join, refuse where none can."""
        missing = placing.obstacle(self._recipe)
        if missing and self._connection == "own":
            raise UserError(
                f"fleet: {missing}; this Ray was started on this machine alone, and nothing can "
                "join it\nLower agents.*.resources, or name a cluster with fleet.address"
            )
        if missing:
            self._note(f"waiting for the cluster: {missing}")

    def _ask(
        self,
        phase: str,
        names: Sequence[str],
        ask: Callable[[str, Any], Any],
        seconds: float | None = None,
    ) -> dict[str, Any]:
        """What the agents answer; of several ranks, the first. See `_ask_ranks`."""

        def begin(name: str) -> Asked:
            return self._actors[name].ask(lambda actor: ask(name, actor))

        answers = self._ask_ranks(phase, names, begin, seconds)
        return {name: ranks[0] for name, ranks in answers.items()}

    def _ask_ranks(
        self,
        phase: str,
        names: Sequence[str],
        begin: Callable[[str], Asked],
        seconds: float | None = None,
    ) -> dict[str, list[Any]]:
        """What the agents answer, all asked at once; without those that are lost meanwhile.

        Raises:
            AgentLost: one was lost, and the others are not to go on.
            UserError: an agent says so, or one was lost before the first responses.
        """
        limit = self._recipe.fleet.seconds if seconds is None else seconds
        answers: dict[str, list[Any]] = {}
        losses: list[Loss] = []
        for group in self._turns(names):
            deadline = time.monotonic() + limit
            asked = {name: begin(name) for name in group}
            for name, call in asked.items():
                try:
                    answers[name] = call.wait(max(deadline - time.monotonic(), min(FETCH, limit)))
                except RankError as failed:
                    if not is_loss(failed.error):
                        raise own_error(failed.error) from failed.error
                    losses.append(self._lost(name, phase, failed, limit))
        self._lose(losses)
        return {name: answers[name] for name in names if name in answers}

    def _turns(self, names: Sequence[str]) -> list[list[str]]:
        """Who is asked at the same time. While it is not known where agents are, one by one."""
        if not self._recipe.fleet.in_turns:
            return [list(names)]
        if not self.places:
            return [[name] for name in names]
        places = {name: self.places[name] for name in names}
        return turns({name: {f"{at.node} {d}" for d in at.devices} for name, at in places.items()})

    def _lost(self, name: str, phase: str, failed: RankError, seconds: float) -> Loss:
        error, starting = failed.error, phase == "start"
        known = self._actors[name].arrived() if starting else self.rank_places[name]
        place = known[failed.rank or 0]
        if starting and isinstance(error, GetTimeoutError) and None in known:
            why = placing.obstacle(self._recipe, name) or (
                "though the cluster could have one: others hold it, the agents do not fit on its "
                "nodes together, or fleet.start_seconds is too little"
            )
            return Loss(name, None, phase, f"no place within {seconds:g} s, {why}")
        key = "fleet.start_seconds" if starting else "fleet.seconds"
        alive = place is None or cluster.is_alive(place.node)
        cause = likely_cause(error, seconds, key, node_alive=alive)
        return Loss(name, place, phase, cause, failed.rank)

    def _why_not_back(self, name: str, failed: RankError) -> str:
        if not is_loss(failed.error):
            return first_line(own_error(failed.error))
        return self._lost(name, "start", failed, self._recipe.fleet.start_seconds).cause

    def _lose(self, losses: Sequence[Loss]) -> None:
        if not losses:
            return
        text = "; ".join(map(str, losses))
        if not self._begun:
            raise UserError(text)
        if self._recipe.fleet.on_peer_failure == "restart":
            raise AgentLost(text)
        new = [str(loss) for loss in losses if self._absences.add(loss.agent)]
        if not self._present(self.learners):
            raise AgentLost(text)
        if new:
            self._note(f"{'; '.join(new)}; the others go on")

    @property
    def _models(self) -> tuple[str, ...]:
        """The agents that have actors."""
        return tuple(self._recipe.models)

    def _with_recorded(
        self,
        asked: Mapping[str, T],
        answer: Callable[[Participant], T],
        wanted: Iterable[str] | None = None,
    ) -> dict[str, T]:
        """What agents answered, and the recordings among those that are wanted, in the recipe's
        order."""
        own = self._recorded.keys() & (self.agents if wanted is None else wanted)
        return {
            name: asked[name] if name in asked else answer(self._recorded[name])
            for name in self.agents
            if name in asked or name in own
        }

    def _present(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self._absences]

    def _start(self, name: str, checkpoint: Path | None) -> Asked:
        """Begin to bring an agent to where it was saved, or to the recipe's model."""
        if name not in self.learners:  # it is as it was, if it is there
            return self._actors[name].start(None, self._probe, anew=False)
        own = checkpoint.resolve() / name if checkpoint else None
        if own is not None and not own.is_dir():  # it was missing when the others were saved
            own = None
        return self._actors[name].start(own, self._probe, anew=own is None)

    def _note_places(self, placed: Mapping[str, list[Place]]) -> None:
        self.rank_places |= placed
        self.places |= {name: places[0] for name, places in placed.items()}

    def _take_back(self, seconds: float = 0.0) -> None:
        def restore(name: str) -> None:
            asked = self._start(name, self._newest())
            self._note_places({name: asked.wait(self._recipe.fleet.start_seconds)})

        self._absences.take_back(restore, seconds)

    def _write(self, phase: str, folder: Path, ask: Callable[[Path, Any], Any]) -> None:
        """Let every learner write into a folder of its name. One that is missing is as it was."""
        folder = folder.resolve()
        present = self._present(self.learners)
        written = self._ask(phase, present, lambda name, actor: ask(folder / name, actor))
        newest = self._newest()
        for name in self.learners:
            if name not in written:
                shutil.rmtree(folder / name, ignore_errors=True)
                if newest is not None and (newest / name).is_dir():
                    shutil.copytree(newest / name, folder / name)

    def _newest(self) -> Path | None:
        """The agents of the newest joint checkpoint."""
        saved = checkpoints(self._run / "checkpoints")
        return saved[-1].agents if saved else None

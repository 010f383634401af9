"""All agents in this process, one after another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from hacrl.agents.learning.reporting import LearnReport
from hacrl.agents.making import make_participant
from hacrl.agents.participant import LearningParticipant, Participant
from hacrl.agents.policy.loading import SharedModels
from hacrl.agents.policy.reading import Reading
from hacrl.agents.policy.source import load_config
from hacrl.agents.policy.tokenizer import load_tokenizer
from hacrl.agents.recording import Recording
from hacrl.agents.sampling.making import check_engine_devices
from hacrl.config.schema import Recipe
from hacrl.fleet.base import ByLearner
from hacrl.fleet.machine import machine
from hacrl.records import Decoding, Pool, Prompt, Rollout

__all__ = ["LocalFleet"]


class LocalFleet:
    """Agents in this process. See `Fleet`.

    Args:
        agents: those that are a `LearningParticipant` learn.
    """

    def __init__(self, agents: Iterable[Participant]) -> None:
        self._agents = {agent.name: agent for agent in agents}
        self._learners = {
            name: agent
            for name, agent in self._agents.items()
            if isinstance(agent, LearningParticipant)
        }

    @classmethod
    def from_recipe(cls, recipe: Recipe) -> LocalFleet:
        """Load every agent of a recipe.

        Raises:
            UserError: a model or a recording cannot be loaded or used.
        """
        # Find what is wrong before weights are loaded.
        recorded = {name: make_participant(name, recipe) for name in recipe.recordings}
        tokenizers = {}
        for name, spec in recipe.models.items():
            load_config(name, spec)
            check_engine_devices(name, spec)
            tokenizers[name] = load_tokenizer(name, spec)
        shared = SharedModels()
        return cls(
            recorded.get(name) or make_participant(name, recipe, tokenizers[name], shared)
            for name in recipe.agents
        )

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(self._agents)

    @property
    def learners(self) -> tuple[str, ...]:
        return tuple(self._learners)

    def machines(self) -> dict[str, dict[str, str]]:
        computing = (n for n, agent in self._agents.items() if not isinstance(agent, Recording))
        return {name: machine() for name in computing}

    def positions(self) -> dict[str, int | None]:
        return {name: agent.positions for name, agent in self._agents.items()}

    def prompt_lengths(self, prompts: Sequence[Prompt]) -> dict[str, list[int]]:
        return {name: agent.prompt_lengths(prompts) for name, agent in self._agents.items()}

    def read(self, prompts: Sequence[Prompt]) -> dict[str, Reading]:
        return {name: agent.read(prompts) for name, agent in self._agents.items()}

    def sample(
        self,
        prompts: Sequence[Prompt],
        group_size: int,
        *,
        occasion: str,
        decoding: Decoding | None = None,
        agents: Sequence[str] | None = None,
    ) -> dict[str, list[Rollout]]:
        return {
            name: agent.sample(prompts, group_size, occasion=occasion, decoding=decoding)
            for name, agent in self._agents.items()
            if agents is None or name in agents
        }

    def learn(self, pool: Pool, advantages: ByLearner) -> list[LearnReport]:
        return [self._learners[name].learn(pool, own) for name, own in advantages.items()]

    def save(self, folder: Path) -> None:
        for name, agent in self._learners.items():
            agent.save(folder / name)

    def checkpoint(self, folder: Path) -> None:
        for name, agent in self._learners.items():
            agent.checkpoint(folder / name)

    def restore(self, folder: Path) -> None:
        for name, agent in self._learners.items():
            agent.restore(folder / name)

    def close(self) -> None:
        """End the processes of the agents, if they have any."""
        for agent in self._agents.values():
            agent.close()

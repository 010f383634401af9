"""What a fleet can do, wherever its agents live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from hacrl.agents.learning.reporting import LearnReport
from hacrl.agents.policy.reading import Reading
from hacrl.records import Decoding, Pool, Prompt, Rollout

__all__ = ["AgentLost", "ByLearner", "Fleet"]


ByLearner = Mapping[str, Mapping[str, Sequence[Sequence[float]]]]
"""Advantages by learner, by source, as [prompts][samples]."""


class AgentLost(Exception):  # noqa: N818 - the run can go on
    """An agent is gone in the middle of a run. The message says which, where, when and likely why.

    The fleet can bring it back; the others must then go back to the same joint checkpoint.
    """


class Fleet(Protocol):
    """All agents of a run, addressed together. Results are by agent, in the recipe's order.

    All answer; `learn`, `save`, `checkpoint` and `restore` are about those that learn. See
    `hacrl.agents.participant`.

    A fleet whose agents live elsewhere raises `AgentLost` from any method when one is gone, or
    goes on with the others; then `sample` and `learn` answer for those that are there.
    """

    @property
    def agents(self) -> tuple[str, ...]:
        """Names, in the order of the recipe."""

    @property
    def learners(self) -> tuple[str, ...]:
        """Names of those that learn, in the same order."""

    def machines(self) -> Mapping[str, Mapping[str, str]]:
        """Where each agent computes, as far as it is there; a recording does not.

        See `hacrl.fleet.machine`.
        """

    def positions(self) -> Mapping[str, int | None]:
        """Tokens of prompt and response that each model can address, None if unlimited."""

    def prompt_lengths(self, prompts: Sequence[Prompt]) -> Mapping[str, Sequence[int]]:
        """Tokens of each prompt under each agent's own template."""

    def read(self, prompts: Sequence[Prompt]) -> Mapping[str, Reading]:
        """What is worth saying about how each agent reads the prompts."""

    def sample(
        self,
        prompts: Sequence[Prompt],
        group_size: int,
        *,
        occasion: str,
        decoding: Decoding | None = None,
        agents: Sequence[str] | None = None,
    ) -> Mapping[str, Sequence[Rollout]]:
        """Responses of all agents, or of those, by prompt. See `Participant.sample`."""

    def learn(self, pool: Pool, advantages: ByLearner) -> Sequence[LearnReport]:
        """Let the learners learn from the pool, each with its own advantages.

        See `LearningParticipant.learn`.
        """

    def save(self, folder: Path) -> None:
        """Write every learner into a folder of its name, as ordinary Hugging Face models."""

    def checkpoint(self, folder: Path) -> None:
        """Write all that the learners continue from, each into a folder of its name.

        May run beside `sample`, but not beside `learn`.
        """

    def restore(self, folder: Path) -> None:
        """Continue from what `checkpoint` wrote.

        Raises:
            UserError: a file cannot be read, or does not fit its agent.
        """

"""Participants of a run: all answer prompts, and most learn from all answers.

A fleet holds either kind, and so may be given any object that has these methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from hacrl.agents.learning.reporting import LearnReport
from hacrl.agents.policy.reading import Reading
from hacrl.records import Decoding, Pool, Prompt, Rollout

__all__ = ["LearningParticipant", "Participant"]


class Participant(Protocol):
    """Answers prompts. Others learn from its responses."""

    name: str

    @property
    def positions(self) -> int | None:
        """Tokens of prompt and response that it can address, None if unlimited."""

    def prompt_lengths(self, prompts: Sequence[Prompt]) -> list[int]:
        """Tokens of each prompt as it reads them; 0 where it reads none."""

    def read(self, prompts: Sequence[Prompt]) -> Reading:
        """What is worth saying about how it reads the prompts of a run."""

    def sample(
        self,
        prompts: Sequence[Prompt],
        group_size: int,
        *,
        occasion: str,
        decoding: Decoding | None = None,
    ) -> list[Rollout]:
        """Up to `group_size` responses to each prompt, by prompt, then sample.

        A learner gives all of them, others may lack some. `Rollout.logprob` and `Rollout.length`
        are those of whoever drew the response, at the temperature of training.

        Args:
            occasion: names the draw, such as `step 3`. The same occasion gives the same responses.
            decoding: other than in training.
        """

    def close(self) -> None:
        """Free what it holds. It answers no more."""


@runtime_checkable
class LearningParticipant(Participant, Protocol):
    """Also learns, and can be saved."""

    def learn(self, pool: Pool, advantage: Mapping[str, Sequence[Sequence[float]]]) -> LearnReport:
        """Learn from the pool of one step.

        Args:
            advantage: for itself and every source that it learns from, advantages as
                [prompts][samples]; NaN where it does not use a response.
        """

    def save(self, folder: Path) -> None:
        """Write the model as an ordinary Hugging Face folder."""

    def checkpoint(self, folder: Path) -> None:
        """Write all that it continues from."""

    def restore(self, folder: Path) -> None:
        """Continue from what `checkpoint` wrote.

        Raises:
            UserError: it cannot be read, or does not fit.
        """

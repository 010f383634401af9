"""Evaluation in the course of training."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from hacrl.config.bounds import Count, Rows, Temperature, Tokens
from hacrl.config.strict import Name, Strict
from hacrl.config.tasks import Task

__all__ = ["Evaluation"]


class Evaluation(Strict):
    """How good every agent is on problems that it does not train on.

    Always after the last step. How an agent answers here has nothing to do with `sampling`. Changes
    nothing learned.
    """

    tasks: dict[Name, Task] = Field(min_length=1)
    """The held-out problems, by name. Their weights have no meaning."""
    every: Rows | None = None
    """Steps between two evaluations; None: after the last step only."""
    at_start: bool = False
    """Evaluate before the first step as well."""
    samples: Count = 1
    """Responses per problem."""
    greedy: bool = True
    """Take the most likely token always; off: draw at the temperature."""
    temperature: Temperature = 1.0
    """Where not greedy."""
    max_new_tokens: Tokens | None = None
    """Longest response; None takes `sampling.max_new_tokens`."""
    limit: Rows | None = None
    """Number of problems to take of each task, from the first; None takes all."""

    @model_validator(mode="after")
    def _samples_differ(self) -> Self:
        if self.greedy and self.samples > 1:
            raise ValueError(
                f"samples: {self.samples} greedy responses to a problem would be equal; "
                "set greedy: false, or samples: 1"
            )
        return self

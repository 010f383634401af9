"""One task: problems, how they are put to the agents, and who judges the responses."""

from __future__ import annotations

from pydantic import field_validator

from hacrl.config.sources import Source
from hacrl.config.strict import Strict
from hacrl.config.verifiers import VerifierSpec

__all__ = ["Task"]


class Task(Strict):
    """Where the prompts come from and who judges the responses."""

    source: Source
    verifier: VerifierSpec
    instruction: str = "{question}"
    """The user's turn. `{question}` stands for the problem."""
    system: str | None = None

    @field_validator("instruction")
    @classmethod
    def _has_question(cls, value: str) -> str:
        if "{question}" not in value:
            raise ValueError("must contain {question}")
        return value

"""Who judges responses."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hacrl.config.strict import Strict

__all__ = ["ExactVerifier", "MathVerifier", "VerifierSpec"]


class _Verifier(Strict):
    marker: str | None = "####"
    """Text after which the answer stands; None if there is none: `exact` then compares the whole
    response."""
    correct: float = 1.0
    """Reward of a right answer."""
    wrong: float = 0.0
    """Reward of a wrong answer, and of none."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.wrong > self.correct:
            raise ValueError("wrong must not be worth more than correct")
        return self


class MathVerifier(_Verifier):
    """Mathematical equality, decided by math-verify."""

    type: Literal["math"] = "math"
    last_number: bool = False
    """Take the last number of a response that has neither a box nor the marker."""


class ExactVerifier(_Verifier):
    """Equality of strings, after surrounding white space is removed."""

    type: Literal["exact"] = "exact"


VerifierSpec = Annotated[MathVerifier | ExactVerifier, Field(discriminator="type")]

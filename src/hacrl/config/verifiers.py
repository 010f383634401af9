"""Who judges responses. docs/rewards.md explains each type with a snippet."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from hacrl.config.bounds import Count, Gibibytes, Reward, Seconds
from hacrl.config.strict import FunctionName, Strict

__all__ = [
    "ChoiceVerifier",
    "CodeVerifier",
    "CommandVerifier",
    "ExactVerifier",
    "MathVerifier",
    "Part",
    "PythonVerifier",
    "ReasoningGymVerifier",
    "SumVerifier",
    "VerifierSpec",
]


class _Verifier(Strict):
    correct: Reward = 1.0
    """Reward of a right answer."""
    wrong: Reward = 0.0
    """Reward of a wrong answer, of none, and of one that exceeds a limit."""

    @property
    def lowest_reward(self) -> float:
        """No response is given less."""
        return self.wrong

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.wrong > self.correct:
            raise ValueError("wrong must not be worth more than correct")
        return self


class _Marked(_Verifier):
    marker: str | None = Field(default="####", pattern=r"\S")
    """Text after which the answer stands; None if there is none: `exact` and `reasoning_gym` then
    take the whole response for the answer."""


class _Scored(_Verifier):
    threshold: Reward = 1.0
    """A score counts as right from here on."""
    lowest: Reward = 0.0
    """The lowest score to expect; a lower one is a scorer error."""

    @property
    def lowest_reward(self) -> float:
        return min(self.wrong, self.lowest)


class _Limited(Strict):
    """Limits of the process that one judgement starts.

    Changes nothing learned unless one is met.
    """

    seconds: Seconds = 5.0
    """Limit of its processor time, from its beginning; less than `verification.seconds`."""
    memory: Gibibytes = 2.0
    """Hard limit of its address space, in GiB."""


class MathVerifier(_Marked):
    """Mathematical equality, decided by math-verify."""

    type: Literal["math"] = "math"
    last_number: bool = False
    """Take the last number of a response that has neither a box nor the marker."""


class ExactVerifier(_Marked):
    """Equality of strings, after surrounding white space is removed."""

    type: Literal["exact"] = "exact"


class ChoiceVerifier(_Marked):
    """The letter of one of several options."""

    type: Literal["choice"] = "choice"
    options: str = Field(default="ABCDE", pattern=r"^[A-Z]{2,}$")
    """The letters there are. A reference answer that is a number counts them from 0."""

    @field_validator("options")
    @classmethod
    def _unlike(cls, value: str) -> str:
        if len(set(value)) < len(value):
            raise ValueError("names a letter twice")
        return value


class CodeVerifier(_Limited, _Verifier):
    """Python code, run with its tests, which are the reference answer and raise on failure."""

    type: Literal["code"] = "code"


class ReasoningGymVerifier(_Marked):
    """The scorer that a reasoning-gym generator brings along."""

    type: Literal["reasoning_gym"] = "reasoning_gym"
    name: str | None = None
    """The generator; None takes the name that its problems carry."""
    threshold: float = Field(default=1.0, ge=1e-6, le=1.0)
    """Scores from here on are right. Below 1, answers with a part of the credit are as well."""
    partial: bool = False
    """Pay a share of the reward for a share of the score."""


class CommandVerifier(_Limited, _Scored):
    """An external program that reads the response from its standard input."""

    type: Literal["command"] = "command"
    argv: list[str] = Field(min_length=1)
    """Program and arguments; no shell is involved."""
    judged_by: Literal["exit_code", "score"] = "exit_code"
    """Exit code: 0 is right, 1 is wrong, anything else a scorer error. Score: the last line of the
    output is a number, which becomes the reward."""
    environment: list[str] = Field(default_factory=list)
    """Names of environment variables that the program needs beyond PATH, HOME and the locale.
    Changes nothing learned unless the program reads them."""

    @property
    def lowest_reward(self) -> float:
        return self.wrong if self.judged_by == "exit_code" else min(self.wrong, self.lowest)


class PythonVerifier(_Scored):
    """A function of the user's, sync or async."""

    type: Literal["python"] = "python"
    function: FunctionName
    """`module:function`, importable from the folder in which the run is started."""
    batch: Count | None = None
    """Call the function with lists of up to this many prompts and responses; None: with one.
    Changes nothing learned where the function judges each by itself."""


PartSpec = Annotated[
    MathVerifier
    | ExactVerifier
    | ChoiceVerifier
    | CodeVerifier
    | ReasoningGymVerifier
    | CommandVerifier
    | PythonVerifier,
    Field(discriminator="type"),
]


class Part(Strict):
    """A verifier as a summand."""

    verifier: PartSpec
    weight: float = Field(default=1.0, ge=0.0, le=1e6)
    """Multiplies the reward. A part of weight 0 is judged, but earns nothing."""


class SumVerifier(Strict):
    """The weighted sum of several rewards; the first part says what is right."""

    type: Literal["sum"] = "sum"
    parts: list[Part] = Field(min_length=1)

    @property
    def lowest_reward(self) -> float:
        """No response is given less."""
        return sum(part.weight * part.verifier.lowest_reward for part in self.parts)


VerifierSpec = Annotated[
    MathVerifier
    | ExactVerifier
    | ChoiceVerifier
    | CodeVerifier
    | ReasoningGymVerifier
    | CommandVerifier
    | PythonVerifier
    | SumVerifier,
    Field(discriminator="type"),
]

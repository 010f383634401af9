"""One task: problems, how they are put to the agents, and who judges the responses."""

from __future__ import annotations

import re
from typing import Any

from pydantic import field_validator, model_validator

from hacrl.config.bounds import Weight
from hacrl.config.sources import Source
from hacrl.config.strict import Strict
from hacrl.config.text import short
from hacrl.config.verifiers import VerifierSpec

__all__ = ["BENCHMARK_DEFAULTS", "Task"]

BENCHMARK_DEFAULTS: dict[str, Any] = {
    "instruction": (
        "{question}\nPlease reason step by step, and put your final answer within \\boxed{}."
    ),
    "verifier": {"type": "math"},
}
"""Instruction and verifier of all seven benchmarks. A reference answer may end in `####`."""


_DOUBLED = re.compile(r"(?<![\w}^_])\{\{\s*question\s*\}\}|\{\s+question\s*\}|\{question\s+\}")
"""Other than in `\\sqrt{{question}}`, where the outer pair belongs to LaTeX."""
_ESCAPED = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)"
    r"|\t(?=ext(?:bf|it|rm|sc|tt)?\{|imes\b|heta\b)|\n(?=abla\b|eq\b|otin\b)"
)
"""Control characters, and those that begin what is a command of LaTeX without them."""
_LETTERS = {
    "\a": "a",
    "\b": "b",
    "\t": "t",
    "\n": "n",
    "\v": "v",
    "\f": "f",
    "\r": "r",
    "\x1b": "e",
}


class Task(Strict):
    """Where the prompts come from and who judges the responses."""

    source: Source
    verifier: VerifierSpec
    """May be left out for a benchmark, which brings its own."""
    instruction: str = "{question}"
    """The user's turn, the last one of a conversation. `{question}` stands for the problem."""
    system: str | None = None
    """System message of all problems; None leaves those that conversations bring along."""
    weight: Weight = 1.0
    """Share of the prompts of every step, relative to the other tasks."""

    @model_validator(mode="before")
    @classmethod
    def _benchmark_defaults(cls, values: Any) -> Any:
        """Spelt out here, so that the resolved recipe shows them."""
        source = values.get("source") if isinstance(values, dict) else None
        kind = source.get("type") if isinstance(source, dict) else getattr(source, "type", None)
        return BENCHMARK_DEFAULTS | values if kind == "benchmark" else values

    @field_validator("instruction")
    @classmethod
    def _has_question(cls, value: str) -> str:
        if match := _DOUBLED.search(value):
            raise ValueError(f"{match[0]} would keep a pair of braces; write {{question}}")
        if "{question}" not in value:
            raise ValueError("must contain {question}")
        return value

    @field_validator("instruction", "system")
    @classmethod
    def _as_it_was_written(cls, value: str | None) -> str | None:
        """Names what double quotes make of a backslash and a letter."""
        if value is not None and (match := _ESCAPED.search(value)):
            letter = _LETTERS.get(match[0], "0")
            raise ValueError(
                f"has a control character at {short(repr(_around(value, match)))}; in "
                f"double quotes \\{letter} is one, so write two backslashes, or single quotes"
            )
        return value


def _around(text: str, match: re.Match[str]) -> str:
    return text[max(match.start() - 10, 0) : match.end() + 10]

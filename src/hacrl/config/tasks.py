"""One task: problems, how they are put to the agents, and who judges the responses."""

from __future__ import annotations

from typing import Any

from pydantic import field_validator, model_validator

from hacrl.config.bounds import Weight
from hacrl.config.sources import Source
from hacrl.config.strict import Strict
from hacrl.config.verifiers import VerifierSpec

__all__ = ["BENCHMARK_DEFAULTS", "Task"]

BENCHMARK_DEFAULTS: dict[str, Any] = {
    "instruction": (
        "{question}\nPlease reason step by step, and put your final answer within \\boxed{}."
    ),
    "verifier": {"type": "math"},
}
"""How all seven benchmarks are put and judged. A gold may end in `####`, the verifier's default."""


class Task(Strict):
    """Where the prompts come from and who judges the responses."""

    source: Source
    verifier: VerifierSpec
    """May be left out for a benchmark, which brings its own."""
    instruction: str = "{question}"
    """The user's turn. `{question}` stands for the problem."""
    system: str | None = None
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
        if "{question}" not in value:
            raise ValueError("must contain {question}")
        return value

"""Where problems come from."""

from __future__ import annotations

import difflib
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from hacrl.config.bounds import Rows, Seed, Weight
from hacrl.config.strict import Free, Strict

__all__ = [
    "BENCHMARKS",
    "BenchmarkSource",
    "CsvSource",
    "FieldSource",
    "GeneratorSpec",
    "HubSource",
    "JsonSource",
    "JsonlSource",
    "ParquetSource",
    "ReasoningGymSource",
    "Source",
    "nearest_benchmark",
]

BENCHMARKS = ("math500", "math", "gsm8k", "aime25", "amc23", "minerva_math", "olympiadbench")
"""The seven of the paper, in its order."""

Settings = dict[str, Free | list[int] | list[float] | list[str]]
Level = Annotated[int, Field(ge=0, le=1000)]


class _Limited(Strict):
    limit: Rows | None = None
    """Number of rows to take, from the first; None takes all."""


class FieldSource(_Limited):
    """What all sources with named fields share."""

    question: str = Field(default="question", min_length=1)
    """The field that holds the problem as a text or a conversation, or a template such as
    `"{problem}\\n{choices}"`."""
    answer: str = Field(default="answer", min_length=1)
    """The field that holds the reference answer, or a text that ends in it."""
    answers: Literal["all", "any"] | None = None
    """What a list of answers means: `any` of them is right by itself, or they are `all` parts of
    one answer. None refuses a list of several. Changes nothing learned where there are no lists."""
    metadata: list[str] | str | None = None
    """Fields that a verifier sees besides the reference answer: a list of them, or the one that
    holds a mapping; None gives it all others. Changes nothing learned unless a verifier reads
    it."""


class JsonlSource(FieldSource):
    """A JSON object on every line of a file."""

    type: Literal["jsonl"] = "jsonl"
    path: str


class JsonSource(FieldSource):
    """A JSON file with a list of objects."""

    type: Literal["json"] = "json"
    path: str
    key: str | None = None
    """Where the file is one object: the key that holds the list, dotted if it lies deeper."""


class CsvSource(FieldSource):
    """A table as text, its first line the names of the fields."""

    type: Literal["csv"] = "csv"
    path: str
    delimiter: str = Field(default=",", min_length=1, max_length=1)


class ParquetSource(FieldSource):
    """A Parquet file."""

    type: Literal["parquet"] = "parquet"
    path: str


class HubSource(FieldSource):
    """A data set of the Hugging Face Hub."""

    type: Literal["hub"] = "hub"
    id: str
    """Such as `openai/gsm8k`."""
    config: str | None = None
    """Name of the configuration, where the data set has several."""
    split: str = "train"
    revision: str | None = None
    """Branch, tag or commit; a commit makes sure that the data stay the same."""


class BenchmarkSource(_Limited):
    """One of the seven benchmarks of the paper. Fields and reference answers are known."""

    type: Literal["benchmark"] = "benchmark"
    name: str
    """One of the seven. Changes nothing learned where there is a `path`."""
    path: str | None = None
    """A local file (JSON lines, JSON, CSV or Parquet); None fetches it from the Hub."""

    @field_validator("name")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in BENCHMARKS:
            raise ValueError(nearest_benchmark(value))
        return value


class GeneratorSpec(Strict):
    """One reasoning-gym generator of a mixture."""

    weight: Weight = 1.0
    """Relative frequency of its problems."""
    difficulty: Level | None = None
    """Level of the generator's curriculum, from 0; None leaves its defaults."""
    config: Settings = Field(default_factory=dict)
    """The generator's own settings, such as `min_terms`; they win over the difficulty."""


class ReasoningGymSource(Strict):
    """Problems made by one reasoning-gym generator, or by a weighted mixture of several."""

    type: Literal["reasoning_gym"] = "reasoning_gym"
    name: str | None = None
    """The generator, where there is one; `difficulty` and `config` belong to it."""
    generators: dict[str, GeneratorSpec] = Field(default_factory=dict)
    """Several generators by name, instead of `name`."""
    size: int = Field(default=10_000, ge=1, le=10**7)
    """Problems in all."""
    seed: Seed = 0
    difficulty: Level | None = None
    config: Settings = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_or_several(self) -> Self:
        if (self.name is None) == (not self.generators):
            raise ValueError("give either name, for one generator, or generators, for a mixture")
        if self.generators and (self.config or self.difficulty is not None):
            raise ValueError("config and difficulty of a mixture belong below each generator")
        return self

    def mixture(self) -> dict[str, GeneratorSpec]:
        """The generators by name, also where there is only one."""
        if self.name is None:
            return self.generators
        return {self.name: GeneratorSpec(difficulty=self.difficulty, config=self.config)}


def nearest_benchmark(name: Any) -> str:
    """What to say about a name that no benchmark has."""
    near = difflib.get_close_matches(str(name).lower().replace("-", ""), BENCHMARKS, n=1)
    hint = f"did you mean {near[0]}? The" if near else "the"
    return f"there is no benchmark {str(name)!r}; {hint} benchmarks are {', '.join(BENCHMARKS)}"


Source = Annotated[
    JsonlSource
    | JsonSource
    | CsvSource
    | ParquetSource
    | HubSource
    | BenchmarkSource
    | ReasoningGymSource,
    Field(discriminator="type"),
]

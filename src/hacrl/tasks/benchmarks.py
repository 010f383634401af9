"""The seven benchmarks of the paper: where each is, and how its rows are read.

Every publisher of one of them chooses other field names, so a row is read by what it has: the
problem is `problem` or `question`; the reference answer is `answer`, else `final_answer`, else it
stands at the end of `solution`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hacrl.config.sources import BENCHMARKS, BenchmarkSource, HubSource, nearest_benchmark
from hacrl.config.tasks import BENCHMARK_DEFAULTS, Task
from hacrl.errors import UserError
from hacrl.paths import resolve
from hacrl.tasks.fields import answer_text, to_problem
from hacrl.tasks.files import SUFFIXES, file_rows
from hacrl.tasks.hub import hub_rows
from hacrl.tasks.problem import Problem
from hacrl.tasks.rows import COMPRESSED, Row

__all__ = ["REGISTRY", "Benchmark", "benchmark_problems", "benchmark_tasks"]

_QUESTION = ("problem", "question")
_GOLD = ("answer", "final_answer", "solution")
_LOCAL = "set the task's source.path, or pass --data DIR with --bench"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark.

    Args:
        title: as the paper writes it.
        hub: data set id.
        config: configuration of the data set, None for its only one.
        split: that is tested on.
        size: problems.
    """

    title: str
    hub: str
    config: str | None
    split: str
    size: int


REGISTRY = {
    "math500": Benchmark("MATH-500", "HuggingFaceH4/MATH-500", None, "test", 500),
    "math": Benchmark("MATH", "DigitalLearningGmbH/MATH-lighteval", "default", "test", 5_000),
    "gsm8k": Benchmark("GSM8K", "openai/gsm8k", "main", "test", 1_319),
    "aime25": Benchmark("AIME 2025", "math-ai/aime25", None, "test", 30),
    "amc23": Benchmark("AMC 2023", "math-ai/amc23", None, "test", 40),
    "minerva_math": Benchmark("Minerva", "math-ai/minervamath", None, "test", 272),
    "olympiadbench": Benchmark(
        "OlympiadBench", "Hothan/OlympiadBench", "OE_TO_maths_en_COMP", "train", 675
    ),
}


def benchmark_tasks(names: Sequence[str], data: Path | None = None) -> dict[str, Task]:
    """A task for each benchmark, with the paper's prompt and verifier.

    Args:
        names: of `REGISTRY`; `all` stands for the seven.
        data: folder that holds a folder per benchmark, each with its `test` file; None for the
            Hub.

    Raises:
        UserError: an unknown name, or the folder lacks the file of a benchmark.
    """
    wanted = dict.fromkeys(n for name in names for n in (BENCHMARKS if name == "all" else [name]))
    for name in wanted:
        if name not in REGISTRY:
            raise UserError(f"--bench: {nearest_benchmark(name)}")
    return {
        name: Task.model_validate(
            BENCHMARK_DEFAULTS
            | {
                "source": {
                    "type": "benchmark",
                    "name": name,
                    "path": None if data is None else str(_local_file(data, name)),
                }
            }
        )
        for name in wanted
    }


def _local_file(data: Path, name: str) -> Path:
    for suffix in (s + packed for packed in ("", *COMPRESSED) for s in SUFFIXES):
        path = data / name / f"test{suffix}"
        if path.is_file():
            return path
    raise UserError(
        f"{data / name}: holds no test file ({', '.join(SUFFIXES)}); without a folder of local "
        f"files {REGISTRY[name].hub} is fetched from the Hub"
    )


def benchmark_problems(source: BenchmarkSource) -> Iterator[Problem]:
    """The problems of a benchmark, from a local file or from the Hub.

    Raises:
        UserError: neither can be read, or a row lacks the problem or its answer.
    """
    benchmark = REGISTRY[source.name]
    if source.path is not None:
        rows = file_rows(resolve(source.path))
    else:
        hub = HubSource(id=benchmark.hub, config=benchmark.config, split=benchmark.split)
        rows = hub_rows(hub, _LOCAL)
    for row in rows:
        problem = to_problem(row, _first(row, _QUESTION), _first(row, _GOLD), answers="all")
        solution = answer_text(row.fields.get("solution"))
        yield Problem(problem.question, problem.gold, solution=solution)


def _first(row: Row, names: Sequence[str]) -> str:
    field = next((name for name in names if row.fields.get(name) is not None), None)
    if field is None:
        raise UserError(
            f"{row.place}: has none of the fields {', '.join(names)}; the fields are: "
            f"{', '.join(row.fields) or 'none'}"
        )
    return field

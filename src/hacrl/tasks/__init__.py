"""Where prompts come from, and how they are dealt out to steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from hacrl.config.sources import (
    BenchmarkSource,
    CsvSource,
    FieldSource,
    HubSource,
    JsonlSource,
    JsonSource,
    ParquetSource,
    ReasoningGymSource,
)
from hacrl.config.tasks import Task
from hacrl.errors import UserError
from hacrl.paths import resolve
from hacrl.records import Prompt
from hacrl.tasks.benchmarks import REGISTRY, Benchmark, benchmark_problems, benchmark_tasks
from hacrl.tasks.csv_file import csv_rows
from hacrl.tasks.fields import to_problem
from hacrl.tasks.fingerprint import fingerprint
from hacrl.tasks.gym import read_gym
from hacrl.tasks.hub import hub_rows
from hacrl.tasks.json_file import json_rows
from hacrl.tasks.jsonl import jsonl_rows
from hacrl.tasks.parquet import parquet_rows
from hacrl.tasks.problem import Problem
from hacrl.tasks.rows import Row
from hacrl.tasks.stream import PromptStream

__all__ = [
    "REGISTRY",
    "Benchmark",
    "Problem",
    "PromptStream",
    "benchmark_tasks",
    "fingerprint",
    "load_problems",
    "load_prompts",
    "load_task",
    "to_prompts",
]


def load_prompts(tasks: Mapping[str, Task]) -> tuple[Prompt, ...]:
    """All prompts of all tasks, one task after the other. See `load_task`."""
    return tuple(prompt for name, task in tasks.items() for prompt in load_task(name, task))


def load_task(name: str, task: Task) -> tuple[Prompt, ...]:
    """All prompts of one task, in the order of its source, with the instruction applied.

    The reference answer is stored as the source has it, be it an answer or a text that ends in one.

    Raises:
        UserError: the source cannot be read, a row lacks what it needs, or there are no rows.
    """
    return to_prompts(name, task, load_problems(name, task))


def load_problems(name: str, task: Task) -> list[Problem]:
    """All problems of one task, in the order of its source; at least one. See `load_task`."""
    try:
        problems = list(_problems(task))
    except UserError as error:
        raise UserError(f"tasks.{name}: {error}") from error
    if not problems:
        raise UserError(f"tasks.{name}: the source has no problems; a task needs at least one")
    return problems


def to_prompts(name: str, task: Task, problems: Sequence[Problem]) -> tuple[Prompt, ...]:
    """Put the problems of a task to the agents. The ids are the task and the row, from 0."""
    return tuple(
        Prompt(
            id=f"{name}/{row}",
            task=name,
            # Not str.format: instructions and problems are full of LaTeX braces.
            text=task.instruction.replace("{question}", problem.question),
            gold=problem.gold,
            system=task.system if problem.system is None else problem.system,
            history=problem.history,
            metadata=problem.metadata,
            alternatives=problem.alternatives,
        )
        for row, problem in enumerate(problems)
    )


def _problems(task: Task) -> Iterator[Problem]:
    source = task.source
    match source:
        case ReasoningGymSource():
            return iter(read_gym(source))
        case BenchmarkSource():
            return islice(benchmark_problems(source), source.limit)
        case _:
            rows = islice(_rows(source), source.limit)
            return (_of_row(row, task, source) for row in rows)


def _of_row(row: Row, task: Task, source: FieldSource) -> Problem:
    problem = to_problem(
        row, source.question, source.answer, answers=source.answers, metadata=source.metadata
    )
    if problem.system is not None and task.system is not None:
        raise UserError(f"{row.place}: has its own system message; drop the task's system")
    return problem


def _rows(source: FieldSource) -> Iterator[Row]:
    match source:
        case JsonlSource():
            return jsonl_rows(resolve(source.path))
        case JsonSource():
            return json_rows(resolve(source.path), source.key)
        case CsvSource():
            return csv_rows(resolve(source.path), source.delimiter)
        case ParquetSource():
            return parquet_rows(resolve(source.path))
        case HubSource():
            return hub_rows(source)
        case _:
            raise TypeError(f"no reader for {type(source).__name__}")

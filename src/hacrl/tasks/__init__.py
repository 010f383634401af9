"""Where prompts come from, and how they are dealt out to steps."""

from __future__ import annotations

from collections.abc import Mapping

from hacrl.config.sources import JsonlSource, ReasoningGymSource
from hacrl.config.tasks import Task
from hacrl.errors import UserError
from hacrl.records import Prompt
from hacrl.tasks.gym import read_gym
from hacrl.tasks.jsonl import read_jsonl
from hacrl.tasks.problem import Problem
from hacrl.tasks.stream import PromptStream

__all__ = ["Problem", "PromptStream", "load_prompts", "load_task"]


def load_prompts(tasks: Mapping[str, Task]) -> tuple[Prompt, ...]:
    """All prompts of all tasks, one task after the other. See `load_task`."""
    return tuple(prompt for name, task in tasks.items() for prompt in load_task(name, task))


def load_task(name: str, task: Task) -> tuple[Prompt, ...]:
    """All prompts of one task, in the order of its source, with the instruction applied.

    The gold is stored as the source has it, be it an answer or a text that ends in one.

    Raises:
        UserError: the source cannot be read, a row lacks what it needs, or there are no rows.
    """
    match task.source:
        case JsonlSource():
            problems = read_jsonl(task.source)
        case ReasoningGymSource():
            problems = read_gym(task.source)
    if not problems:
        raise UserError(f"tasks.{name}: the source has no problems; a task needs at least one")
    return tuple(
        Prompt(
            id=f"{name}/{row}",
            task=name,
            # Not str.format: instructions and problems are full of LaTeX braces.
            text=task.instruction.replace("{question}", problem.question),
            gold=problem.gold,
            system=task.system,
            metadata=problem.metadata,
        )
        for row, problem in enumerate(problems)
    )

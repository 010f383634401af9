"""Where prompts come from, and how they are dealt out to steps."""

from __future__ import annotations

from hacrl.config.schema import JsonlSource, ReasoningGymSource, Task
from hacrl.errors import UserError
from hacrl.records import Prompt
from hacrl.tasks.gym import read_gym
from hacrl.tasks.jsonl import read_jsonl
from hacrl.tasks.problem import Problem
from hacrl.tasks.stream import PromptStream

__all__ = ["Problem", "PromptStream", "load_prompts"]


def load_prompts(task: Task) -> tuple[Prompt, ...]:
    """All prompts of a task, in the order of its source, with the instruction applied.

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
        raise UserError(f"task {task.name}: the source has no problems; a task needs at least one")
    return tuple(
        Prompt(
            id=f"{task.name}/{row}",
            task=task.name,
            # Not str.format: instructions and problems are full of LaTeX braces.
            text=task.instruction.replace("{question}", problem.question),
            gold=problem.gold,
            system=task.system,
            metadata=problem.metadata,
        )
        for row, problem in enumerate(problems)
    )

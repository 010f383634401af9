"""What the targets are evaluated on: benchmarks, tasks of a recipe, local files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hacrl.config import load_recipe
from hacrl.config.bundled import find_recipe
from hacrl.config.rollouts import Verification
from hacrl.config.tasks import BENCHMARK_DEFAULTS, Task
from hacrl.errors import UserError
from hacrl.evaluation.settings import Settings
from hacrl.records import Prompt
from hacrl.tasks import benchmark_tasks, load_task
from hacrl.tasks.files import SUFFIXES, format_of

__all__ = ["Job", "chosen_tasks", "load_job"]


@dataclass(frozen=True, slots=True)
class Job:
    """One benchmark and how its responses are sampled.

    Args:
        name: of the benchmark, task or file.
        task: where the problems come from and who judges.
        prompts: the problems, in the order of the source.
        settings: how responses are drawn.
    """

    name: str
    task: Task
    prompts: tuple[Prompt, ...]
    settings: Settings

    @property
    def key(self) -> str:
        """Equal for jobs whose answers may be compared: the same questions with the same settings.

        The problems themselves are not in it, so that a part of them can be evaluated first.
        """
        task = self.task.model_dump(mode="json", include={"instruction", "system", "verifier"})
        content = {"name": self.name, "task": task, "settings": asdict(self.settings)}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def responses(self) -> int:
        """How many there are to draw."""
        return len(self.prompts) * self.settings.samples


def chosen_tasks(
    benchmarks: Sequence[str], recipes: Sequence[str], files: Sequence[Path], data: Path | None
) -> tuple[dict[str, Task], Verification]:
    """The tasks that a user names, by name, and the limits under which their answers are judged.

    The limits are those of the first recipe, if there is one.

    Args:
        benchmarks: names, or `all`.
        recipes: `RECIPE` for its held-out tasks, or its tasks if it has none; `RECIPE:TASK` for
            one of either.
        files: with the fields `question` and `answer`, treated like the benchmarks.
        data: folder of local benchmark files; None for the Hub.

    Raises:
        UserError: nothing is named, something unknown is, or two of it share a name.
    """
    if data is not None and not benchmarks:
        raise UserError("--data: needs --bench, such as --bench gsm8k")
    named = list(benchmark_tasks(benchmarks, data).items())
    rule = None
    for text in recipes:
        tasks, limits = _of_recipe(text)
        named += tasks.items()
        rule = rule or limits
    named += [(path.name.partition(".")[0] or path.name, _of_file(path)) for path in files]
    if not named:
        raise UserError(
            "nothing to evaluate on; name benchmarks with --bench gsm8k,math500 (or all), a recipe "
            "with --task, or a file with --file"
        )
    chosen: dict[str, Task] = {}
    for name, task in named:
        if name in chosen:
            raise UserError(f"two tasks are called {name}; evaluate them one after the other")
        chosen[name] = task
    return chosen, rule or Verification()


def load_job(name: str, task: Task, settings: Settings, limit: int | None) -> Job:
    """Read the problems of a task.

    Args:
        limit: number of problems to take, from the first; None takes all.

    Raises:
        UserError: they cannot be read.
    """
    prompts = load_task(name, task)
    return Job(name, task, prompts[:limit], settings)


def _of_recipe(text: str) -> tuple[Mapping[str, Task], Verification]:
    # A path may hold a colon itself, and then exists as it is.
    place, colon, wanted = (text, "", "") if Path(text).exists() else text.rpartition(":")
    recipe = load_recipe(find_recipe(place or text))
    held_out = recipe.evaluation.tasks if recipe.evaluation else {}
    if not (place and colon):
        return held_out or recipe.tasks, recipe.verification
    known = recipe.tasks | held_out
    if wanted not in known:
        raise UserError(
            f"--task {text}: the recipe has no task {wanted}; its tasks are {', '.join(known)}"
        )
    return {wanted: known[wanted]}, recipe.verification


def _of_file(path: Path) -> Task:
    suffix = format_of(path)
    if suffix is None:
        raise UserError(f"--file {path}: the name must end in {', '.join(SUFFIXES)}")
    source = {"type": suffix.lstrip("."), "path": str(path)}
    return Task.model_validate(BENCHMARK_DEFAULTS | {"source": source})

"""Evaluation of a fleet: in the course of training, and at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hacrl.config.evaluation import Evaluation
from hacrl.config.rollouts import Prompts
from hacrl.config.schema import Recipe
from hacrl.console.progress import duration
from hacrl.errors import UserError
from hacrl.evaluation.answers import Answer, Scores, answers_of, scores
from hacrl.evaluation.jobs import Job, load_job
from hacrl.evaluation.settings import Settings
from hacrl.evaluation.store import open_store
from hacrl.evaluation.targets import Target
from hacrl.fleet import Fleet
from hacrl.records import Decoding, Prompt
from hacrl.runs.writing import append_lines
from hacrl.tasks.fitting import prompt_limit, short_enough
from hacrl.verify import VerifierPool, make_pool, make_verifiers
from hacrl.verify.rollouts import verify_rollouts

__all__ = ["HeldOut", "answer_all", "held_out_jobs"]

_ANY_LENGTH = Prompts(max_tokens=2**24)
"""Held-out problems are limited by the models alone, not by what is trained on."""


def answer_all(
    fleet: Fleet,
    prompts: Sequence[Prompt],
    verifiers: VerifierPool,
    *,
    samples: int,
    occasion: str,
    decoding: Decoding | None = None,
) -> dict[str, list[Answer]]:
    """Every learner's answers to the same problems, by problem, then sample.

    Args:
        samples: k, responses per problem.
        occasion: names the draw; see `Respondent.sample`. Random states stay as they were.
        decoding: other than in training.
    """
    rollouts = fleet.sample(
        prompts, samples, occasion=occasion, decoding=decoding, agents=fleet.learners
    )
    pool = verify_rollouts(0, prompts, samples, rollouts, verifiers)
    return {agent: answers_of(pool, agent) for agent in pool.agents}


def held_out_jobs(recipe: Recipe) -> list[Job]:
    """The held-out tasks of a recipe with their problems, none if it has no evaluation.

    Raises:
        UserError: they cannot be read, or a file or function that a verifier names does not exist.
    """
    rule = recipe.evaluation
    if rule is None:
        return []
    settings = Settings(
        samples=rule.samples,
        greedy=rule.greedy,
        temperature=rule.temperature,
        max_new_tokens=rule.max_new_tokens or recipe.sampling.max_new_tokens,
    )
    jobs = []
    for name, task in rule.tasks.items():
        try:
            make_verifiers({name: task})
            jobs.append(load_job(name, task, settings, rule.limit))
        except UserError as error:
            raise UserError(f"evaluation.{error}") from error
    return jobs


class HeldOut:
    """Evaluates the learners of a run when an evaluation is due. A context manager.

    What does not learn never changes; `hacrl eval` measures such a model once and for all.

    Writes a line per evaluation, agent and task to `evaluations.jsonl` of the run folder, and every
    answer below `evaluations/step-N/`. N, as `step` in the lines, is the number of completed steps.

    Args:
        recipe: of the run.
        jobs: see `held_out_jobs`.
        fleet: of the run.
        note: called with a line of results, and with what was left out.
        phase: called when an evaluation begins.

    Raises:
        UserError: no held-out problem is short enough for every learner.
    """

    def __init__(
        self,
        recipe: Recipe,
        jobs: Sequence[Job],
        fleet: Fleet,
        note: Callable[[str], None],
        phase: Callable[[str, int], None],
    ) -> None:
        self._recipe = recipe
        self._fleet = fleet
        self._note = note
        self._phase = phase
        self._jobs = [self._short_enough(job) for job in jobs]
        self._verifiers = make_pool({job.name: job.task for job in jobs}, recipe.verification)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._verifiers.close()

    def after(self, completed: int, folder: Path) -> list[Mapping[str, Any]]:
        """Evaluate, if an evaluation is due after `completed` steps.

        Args:
            folder: of the run.

        Returns:
            The lines that were added to `evaluations.jsonl`.
        """
        rule = self._recipe.evaluation
        if rule is None or not _due(rule, completed, self._recipe.steps):
            return []
        self._phase("evaluate", max(completed - 1, 0))
        return [line for job in self._jobs for line in self._evaluate(job, completed, folder)]

    def _evaluate(self, job: Job, completed: int, folder: Path) -> list[Mapping[str, Any]]:
        started = time.perf_counter()
        settings = job.settings
        answers = answer_all(
            self._fleet,
            job.prompts,
            self._verifiers,
            samples=settings.samples,
            occasion=f"evaluation {job.name} {completed}",
            decoding=Decoding(
                settings.max_new_tokens,
                self._recipe.sampling.batch_size,
                settings.greedy,
                settings.temperature,
            ),
        )
        seconds = time.perf_counter() - started
        lines = [
            _line(completed, agent, job, scores(own), seconds) for agent, own in answers.items()
        ]
        for agent, own in answers.items():
            target = Target(agent, agent, str(folder), self._recipe.models[agent])
            root = folder / "evaluations" / f"step-{completed:06d}"
            open_store(root, target, f"{folder.name} step {completed}", job).add(own)
        append_lines(folder / "evaluations.jsonl", lines)
        self._note(_sentence(completed, job.name, lines, seconds))
        return lines

    def _short_enough(self, job: Job) -> Job:
        limits = {
            name: prompt_limit(_ANY_LENGTH, job.settings.max_new_tokens, positions)
            for name, positions in self._fleet.positions().items()
            if name in self._fleet.learners
        }
        lengths = self._fleet.prompt_lengths(job.prompts)
        kept = short_enough(job.prompts, {name: lengths[name] for name in limits}, limits)
        if len(kept) == len(job.prompts):
            return job
        message = (
            f"evaluation.tasks.{job.name}: {len(job.prompts) - len(kept)} of {len(job.prompts)} "
            f"problems leave some agent no room for {job.settings.max_new_tokens} new tokens"
        )
        if not kept:
            raise UserError(f"{message}; lower evaluation.max_new_tokens")
        self._note(f"{message}, and are left out for all")
        return Job(job.name, job.task, tuple(kept), job.settings)


def _due(rule: Evaluation, completed: int, steps: int) -> bool:
    if completed == 0:
        return rule.at_start
    return completed == steps or (rule.every is not None and completed % rule.every == 0)


def _line(
    completed: int, agent: str, job: Job, score: Scores | None, seconds: float
) -> Mapping[str, Any]:
    """One object of `evaluations.jsonl`. `docs/evaluation.md` explains each name."""
    head = {"step": completed, "agent": agent, "task": job.name}
    if score is None:  # a gap, never a zero
        return {**head, "problems": 0, "value": None, "seconds": round(seconds, 4)}
    several = score.samples > 1
    return {
        **head,
        "problems": score.problems,
        "metric": score.metric,
        "value": score.main.value,
        "low": score.main.low,
        "high": score.main.high,
        "interval": score.main.method,
        **({f"best@{score.samples}": score.best.value} if several else {}),
        **({f"maj@{score.samples}": score.majority.value} if several else {}),
        "truncated": score.truncated,
        "no_answer": score.no_answer,
        "tokens": score.tokens,
        "unscored": score.unscored,
        "outcomes": dict(score.outcomes),
        "seconds": round(seconds, 4),
    }


def _sentence(completed: int, task: str, lines: Sequence[Mapping[str, Any]], seconds: float) -> str:
    figures = [
        f"{line['agent']} -"
        if line["value"] is None
        else f"{line['agent']} {line['value']:.3f} ({line['low']:.3f}-{line['high']:.3f})"
        for line in lines
    ]
    return f"after step {completed}: {task} {', '.join(figures)} in {duration(seconds)}"

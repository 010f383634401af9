"""Evaluation of agents on benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hacrl.config.rollouts import Verification
from hacrl.evaluation.answers import Answer
from hacrl.evaluation.asking import Asking, Watcher
from hacrl.evaluation.jobs import Job
from hacrl.evaluation.store import Stored, open_store
from hacrl.evaluation.targets import Target, target_fingerprint
from hacrl.verify import make_pool

__all__ = ["Result", "evaluate"]


@dataclass(frozen=True, slots=True)
class Result:
    """All answers of one target to one job, by problem, then sample."""

    target: Target
    job: Job
    answers: Sequence[Answer]


def evaluate(
    targets: Sequence[Target],
    jobs: Sequence[Job],
    root: Path,
    watcher: Watcher,
    *,
    rule: Verification | None = None,
    batch_size: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> list[Result]:
    """Evaluate every target on every job, and store every answer below `root`.

    Stored answers are reused. A model is loaded only if some are missing.

    Args:
        rule: limits under which responses are judged.
        batch_size: sequences generated together; None starts with 32 on a CPU and 256 elsewhere.
            Halved whenever memory runs out.
        stop: asked between two chunks, each of which is stored.

    Raises:
        UserError: something that the user can fix.
        Interrupted: `stop` said so; the same call continues.
    """
    results = []
    with make_pool({job.name: job.task for job in jobs}, rule or Verification()) as verifiers:
        for target in targets:
            fingerprint = target_fingerprint(target)
            stores = [open_store(root, target, fingerprint, job) for job in jobs]
            done = [_matching(job, store) for job, store in zip(jobs, stores, strict=True)]
            for job, answered in zip(jobs, done, strict=True):
                count = len(answered) * job.settings.samples
                watcher.progress(f"{target.label} {job.name}", count, stored=True)
            if any(
                len(answered) < len(job.prompts) for job, answered in zip(jobs, done, strict=True)
            ):
                asking = Asking(target, verifiers, watcher, batch_size, stop)
                for job, store, answered in zip(jobs, stores, done, strict=True):
                    answered.update(asking.ask(job, store, answered))
                asking.close()
            results += [
                Result(target, job, [a for prompt in job.prompts for a in answered[prompt.id]])
                for job, answered in zip(jobs, done, strict=True)
            ]
    return results


def _matching(job: Job, store: Stored) -> dict[str, list[Answer]]:
    """What is stored of the job's problems, as they are now and with all samples."""
    prompts = {prompt.id: prompt for prompt in job.prompts}
    by_problem: dict[str, dict[int, Answer]] = {}
    for answer in store.answers():
        prompt = prompts.get(answer.problem)
        if prompt and (prompt.text, prompt.gold) == (answer.prompt, answer.gold):
            by_problem.setdefault(answer.problem, {})[answer.sample] = answer
    return {
        problem: [answers[number] for number in sorted(answers)]
        for problem, answers in by_problem.items()
        if len(answers) == job.settings.samples
    }

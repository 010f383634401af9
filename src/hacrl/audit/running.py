"""Scoring: reference answers as they are and in other forms, and given responses."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

from hacrl.audit.counting import Findings
from hacrl.audit.judgeable import why_not_verifiable, why_unjudged
from hacrl.audit.making import make_tries, said_by, verifier_of
from hacrl.audit.responses import paired
from hacrl.audit.tries import Audited, Tried, Try, Unjudged
from hacrl.config.rollouts import Verification
from hacrl.config.tasks import Task
from hacrl.config.verifiers import (
    CodeVerifier,
    CommandVerifier,
    PythonVerifier,
    ReasoningGymVerifier,
)
from hacrl.records import Outcome, Prompt, Verdict
from hacrl.seeding import derive_seed
from hacrl.tasks import Problem, load_problems, load_task, to_prompts
from hacrl.verify import VerifierPool, make_pool
from hacrl.verify.extract import extract_answer

__all__ = [
    "Tell",
    "audit_golds",
    "audit_responses",
    "audit_tasks",
    "audit_tries",
    "open_pool",
    "score_golds",
    "score_tries",
    "tests_alone",
]

Tell = Callable[[int, int], None]
"""Called with how many responses have been scored, and of how many."""

_AT_ONCE = 1024
"""Responses between two reports of progress."""


def audit_tasks(
    tasks: Mapping[str, Task], rule: Verification, rows: int, begin: Callable[[str], Tell]
) -> Findings:
    """Audit the reference answers of tasks: by themselves, in other forms, and with wrong answers
    near them.

    Args:
        rows: reference answers of each task that are tried in other forms at most; 0: none.
        begin: called with the name of each part of the work; returns a callback for its progress.

    Raises:
        UserError: a source cannot be read.
    """
    with open_pool(tasks, rule) as pool:
        golds = score_golds(pool, tasks, begin("reference answers"))
        tried, unjudged = audit_tries(pool, tasks, golds, rows, begin("variations"))
    tests = (row.prompt.id for row in golds if tests_alone(row, tasks[row.prompt.task]))
    return Findings(golds, tried, unjudged, frozenset(tests))


def audit_golds(tasks: Mapping[str, Task], rule: Verification, tell: Tell) -> list[Audited]:
    """Score the reference answers against themselves; see `score_golds`.

    Raises:
        UserError: a source cannot be read.
    """
    with open_pool(tasks, rule) as pool:
        return score_golds(pool, tasks, tell)


def open_pool(tasks: Mapping[str, Task], rule: Verification) -> VerifierPool:
    """A pool for an audit, with a worker for each processor.

    A failing scorer is what the audit is to show, so no share of errors stops it.
    """
    workers = max(rule.workers, min(os.cpu_count() or 1, 8))
    return make_pool(tasks, rule.model_copy(update={"max_errors": 1.0, "workers": workers}))


def score_golds(pool: VerifierPool, tasks: Mapping[str, Task], tell: Tell) -> list[Audited]:
    """Score the reference answers against themselves: everything should be right.

    The response to a problem is its worked solution if there is one that ends in an answer, else
    the reference answer. A reference answer that is a bare answer is put in a box where it is not
    right as it stands. Tests of `code` are no response, so there is none without a solution.

    Raises:
        UserError: a source cannot be read.
    """
    pairs: list[tuple[Prompt, str]] = []
    bare: list[bool] = []
    for name, task in tasks.items():
        problems = load_problems(name, task)
        marker = getattr(task.verifier, "marker", None)
        tests = isinstance(verifier_of(task), CodeVerifier)
        for prompt, problem in zip(to_prompts(name, task, problems), problems, strict=True):
            complete = problem.solution if tests else _complete(problem, marker)
            if tests and complete is None:
                complete = ""  # scored like any response; the report leaves it out
            said = said_by(task, problem.gold) if complete is None else complete
            pairs.append((prompt, said))
            bare.append(complete is None)
    verdicts = _verify(pool, pairs, tell)
    again = [
        i for i, verdict in enumerate(verdicts) if bare[i] and verdict.outcome is not Outcome.RIGHT
    ]
    boxed = [(pairs[i][0], rf"\boxed{{{pairs[i][1]}}}") for i in again]
    for i, pair, verdict in zip(again, boxed, pool.verify(boxed), strict=True):
        # A verifier that reads no boxes has judged the reference answer as it stands.
        if verdict.outcome is not Outcome.NO_ANSWER:
            pairs[i], verdicts[i] = pair, verdict
    return [Audited(*pair, verdict) for pair, verdict in zip(pairs, verdicts, strict=True)]


def audit_tries(
    pool: VerifierPool, tasks: Mapping[str, Task], golds: Sequence[Audited], rows: int, tell: Tell
) -> tuple[list[Tried], list[Unjudged]]:
    """Try reference answers in other forms, and wrong answers near them.

    Args:
        golds: from `score_golds`. One that is not right by itself, or by which nothing can be
            judged, is not tried.
        rows: reference answers of each task that are tried at most; which ones is drawn, the same
            each time.

    Returns:
        The tries with their verdicts, and the reference answers that cannot be judged by, both in
        the order of the reference answers.
    """
    unjudged: dict[str, Unjudged] = {}
    pairs = []
    for name, task in tasks.items():
        own = [row for row in golds if row.prompt.task == name]
        fit = []
        for row in own:
            reason = why_unjudged(row, task, said_by(task, row.prompt.gold))
            if reason is not None:
                unjudged[row.prompt.id] = Unjudged(row.prompt, reason)
            elif row.verdict.outcome is Outcome.RIGHT or not _shows_itself(task):
                fit.append(row.prompt)
        if len(fit) > rows:
            chosen = set(Random(derive_seed(0, "audit", name)).sample(range(len(fit)), rows))
            fit = [prompt for i, prompt in enumerate(fit) if i in chosen]
        for prompt in fit:
            tries = make_tries(task, prompt)
            pairs += [(prompt, attempt) for attempt in tries]
    tried = score_tries(pool, pairs, tell)
    unjudged |= _accepting_anything(tried, tasks)
    order = {row.prompt.id: i for i, row in enumerate(golds)}
    return (
        [row for row in tried if row.prompt.id not in unjudged],
        sorted(unjudged.values(), key=lambda row: order[row.prompt.id]),
    )


def score_tries(pool: VerifierPool, pairs: Sequence[tuple[Prompt, Try]], tell: Tell) -> list[Tried]:
    """Verdicts on responses that were made up."""
    verdicts = _verify(pool, [(prompt, attempt.response) for prompt, attempt in pairs], tell)
    return [Tried(*pair, verdict) for pair, verdict in zip(pairs, verdicts, strict=True)]


def audit_responses(
    tasks: Mapping[str, Task], rule: Verification, path: Path, field: str, tell: Tell
) -> list[Audited]:
    """Score the responses of a file; see `responses.paired` for whose they are.

    Raises:
        UserError: a source or the file cannot be read, a row has no response, or rows and prompts
            do not match.
    """
    prompts = [prompt for name, task in tasks.items() for prompt in load_task(name, task)]
    pairs = paired(path, field, prompts)
    with open_pool(tasks, rule) as pool:
        verdicts = _verify(pool, pairs, tell)
    return [Audited(*pair, verdict) for pair, verdict in zip(pairs, verdicts, strict=True)]


def tests_alone(row: Audited, task: Task) -> bool:
    """Whether a problem has tests and no solution, so that its reference answer was not scored."""
    return isinstance(verifier_of(task), CodeVerifier) and not row.response


def _shows_itself(task: Task) -> bool:
    """Whether a reference answer is, or says, a right response."""
    return not isinstance(verifier_of(task), (CodeVerifier, CommandVerifier, PythonVerifier))


def _accepting_anything(tried: Sequence[Tried], tasks: Mapping[str, Task]) -> dict[str, Unjudged]:
    """Reference answers of scorers and tests that accept every wrong or nonsensical response."""
    groups: dict[str, list[Tried]] = {}
    for row in tried:
        spec = verifier_of(tasks[row.prompt.task])
        reads = isinstance(spec, ReasoningGymVerifier) and row.attempt.kind.startswith("nonsense")
        if reads or isinstance(spec, CodeVerifier):
            groups.setdefault(row.prompt.id, []).append(row)
    unjudged = {}
    for name, group in groups.items():
        prompt = group[0].prompt
        tests = isinstance(verifier_of(tasks[prompt.task]), CodeVerifier)
        if all(row.verdict.outcome is Outcome.NOT_VERIFIABLE for row in group):
            reason = why_not_verifiable(verifier_of(tasks[prompt.task]), prompt)
            unjudged[name] = Unjudged(prompt, reason)
        elif all(row.false_positive for row in group):
            generator = prompt.metadata.get("source_dataset", "")
            reason = (
                "the tests accept every wrong program"
                if tests
                else f"the scorer of {generator} accepts any answer to this problem"
            )
            unjudged[name] = Unjudged(prompt, reason)
    return unjudged


def _verify(pool: VerifierPool, pairs: Sequence[tuple[Prompt, str]], tell: Tell) -> list[Verdict]:
    verdicts: list[Verdict] = []
    tell(0, len(pairs))
    for start in range(0, len(pairs), _AT_ONCE):
        verdicts += pool.verify(pairs[start : start + _AT_ONCE])
        tell(len(verdicts), len(pairs))
    return verdicts


def _complete(problem: Problem, marker: str | None) -> str | None:
    """The solution or the reference answer, whichever first says itself where its answer stands."""
    for text in (problem.solution, problem.gold):
        if text is not None and extract_answer(text, marker) is not None:
            return text
    return None

"""Paired comparison of agents on the same problems, from stored responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hacrl.errors import UserError
from hacrl.evaluation.answers import Answer, Headline, scores
from hacrl.evaluation.estimators import bootstrap_difference
from hacrl.evaluation.store import Stored, stored_evaluations
from hacrl.evaluation.targets import Target, find_targets, target_fingerprint
from hacrl.paths import resolve

__all__ = ["Comparison", "compare", "compare_answers", "paired"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One agent against another on the problems that both have answered.

    Args:
        benchmark: name.
        baseline: the agent that the other is compared with.
        agent: the other.
        problems: answered by both.
        metric: such as `avg@1`.
        before: the baseline's value on these problems.
        after: the agent's.
        difference: after − before.
        low: lower end of the paired bootstrap interval of the difference, 95%.
        high: upper end.
        gained: problems on which the agent is better.
        lost: problems on which it is worse.
    """

    benchmark: str
    baseline: str
    agent: str
    problems: int
    metric: str
    before: float
    after: float
    difference: float
    low: float
    high: float
    gained: int
    lost: int


def compare(texts: Sequence[str], root: Path, benchmarks: Sequence[str] = ()) -> list[Comparison]:
    """Compare the agents of the targets on the problems that both have answered.

    Args:
        texts: targets as for `hacrl eval`. The first is the baseline.
        root: where `hacrl eval` has stored responses. For a run without any, its last
            evaluation in training is used.
        benchmarks: only these; empty for all.

    Raises:
        UserError: fewer than two agents, or no problem that two of them have answered.
    """
    targets = find_targets(texts)
    if len(targets) < 2:
        raise UserError("compare: needs at least two agents; name runs, folders or Hub models")
    stored = list(stored_evaluations(root)) if root.is_dir() else []
    own = {target.label: _evaluations_of(target, stored) for target in targets}
    comparisons: list[Comparison] = []
    for base, other in paired(targets):
        theirs = own[other.label]
        new = [
            compare_answers(
                evaluation.benchmark,
                (base.label, evaluation.answers()),
                (other.label, theirs[key].answers()),
                evaluation.headline,
            )
            for key, evaluation in own[base.label].items()
            if key in theirs and (not benchmarks or evaluation.benchmark in benchmarks)
        ]
        if not any(new):
            raise UserError(
                f"compare: {base.label} and {other.label} have no problem that both have answered "
                f"with the same settings (looked in {root})\nEvaluate both: "
                f"hacrl eval {base.origin} {other.origin} --bench …"
            )
        comparisons += [comparison for comparison in new if comparison is not None]
    return comparisons


def paired(targets: Sequence[Target]) -> list[tuple[Target, Target]]:
    """Who is compared with whom: agents of the same name in two runs, else all with the first."""
    groups: dict[str, dict[str, Target]] = {}
    for target in targets:
        groups.setdefault(target.origin, {})[target.agent] = target
    first, *others = groups.values()
    pairs = [(first[name], other[name]) for other in others for name in first if name in other]
    return pairs or [(targets[0], other) for other in targets[1:]]


def compare_answers(
    benchmark: str,
    before: tuple[str, Sequence[Answer]],
    after: tuple[str, Sequence[Answer]],
    headline: Headline,
) -> Comparison | None:
    """Compare the answers of two labelled agents; None if they have no problem in common.

    A problem is shared if it has the same id, text and reference answer, and both have a score.
    """
    shared = _asked(before[1]) & _asked(after[1])
    first, second = (
        scores([a for a in answers if (a.problem, a.prompt, a.gold) in shared], headline)
        for _, answers in (before, after)
    )
    if first is None or second is None:
        return None
    old, new = first.values, second.values
    problems = [problem for problem in old if problem in new]
    if not problems:
        return None
    a, b = [old[p] for p in problems], [new[p] for p in problems]
    difference = bootstrap_difference(b, a)
    return Comparison(
        benchmark=benchmark,
        baseline=before[0],
        agent=after[0],
        problems=len(problems),
        metric=first.metric,
        before=sum(a) / len(a),
        after=sum(b) / len(b),
        difference=difference.value,
        low=difference.low,
        high=difference.high,
        gained=sum(y > x for x, y in zip(a, b, strict=True)),
        lost=sum(y < x for x, y in zip(a, b, strict=True)),
    )


def _asked(answers: Sequence[Answer]) -> set[tuple[str, str, str]]:
    return {(answer.problem, answer.prompt, answer.gold) for answer in answers}


def _evaluations_of(target: Target, stored: Sequence[Stored]) -> Mapping[str, Stored]:
    """What a target has answered, by the key of the question."""
    fingerprint = target_fingerprint(target)
    answered = {
        evaluation.key: evaluation for evaluation in stored if evaluation.fingerprint == fingerprint
    }
    return answered or {evaluation.key: evaluation for evaluation in _in_training(target)}


def _in_training(target: Target) -> Iterator[Stored]:
    """The last evaluation that a run made of the agent as it trained."""
    folders = sorted((resolve(target.origin) / "evaluations").glob("step-*"))
    for evaluation in stored_evaluations(folders[-1]) if folders else ():
        if evaluation.label == target.agent:
            yield evaluation

"""Responses to held-out problems with their verdicts, and their scores."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hacrl.evaluation.estimators import Estimate, estimate, majority, pass_at
from hacrl.records import Outcome, Pool, Prompt, Verified

__all__ = ["Answer", "Headline", "Scores", "answers_of", "scores"]

Headline = Literal["avg", "best"]
"""Which figure stands for a benchmark: avg@k, or best@k."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One response with its verdict: a row of what is stored.

    Args:
        problem: id of the prompt.
        sample: 0-based number of the response.
        prompt: the user's turn.
        gold: the reference answer, as the verifier has it.
        response: what the agent wrote, without the end token; see `Rollout.text`.
        tokens: length of the response in the agent's tokens, end token included.
        finished: whether the agent ended it, as opposed to the length limit.
        too_long: whether the problem left no room for a response, so that none was asked for. It
            counts as one without an answer.
        reward: None where the response could not be scored.
        outcome: the verifier's verdict.
        answer: what the verifier took for the answer, None if there was none.
    """

    problem: str
    sample: int
    prompt: str
    gold: str
    response: str
    tokens: int
    finished: bool
    too_long: bool
    reward: float | None
    outcome: str
    answer: str | None

    @classmethod
    def of(cls, prompt: Prompt, row: Verified) -> Answer:
        """From a verified rollout."""
        rollout, verdict = row.rollout, row.verdict
        return cls(
            problem=prompt.id,
            sample=rollout.sample,
            prompt=prompt.text,
            gold=prompt.gold,
            response=rollout.text,
            tokens=rollout.length,
            finished=rollout.finished,
            too_long=False,
            reward=verdict.reward,
            outcome=str(verdict.outcome),
            answer=verdict.answer,
        )

    @classmethod
    def unasked(cls, prompt: Prompt, sample: int) -> Answer:
        """Of a problem that is too long for the model."""
        none = str(Outcome.NO_ANSWER)
        return cls(prompt.id, sample, prompt.text, prompt.gold, "", 0, False, True, 0.0, none, None)

    @property
    def right(self) -> bool:
        return self.outcome == Outcome.RIGHT


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of one agent on one benchmark.

    Args:
        problems: that are scored.
        unscored: responses that could not be scored; they are left out of every mean.
        samples: k, responses per problem.
        average: avg@k, the mean share of right responses.
        best: best@k, the share of problems with a right response among all k.
        majority: maj@k; see `estimators.majority`.
        pass_at: pass@j for j = 1, 2, 4, … and k, by j; unbiased.
        truncated: share of responses that hit the length limit.
        no_answer: share of responses without an answer in the expected form.
        too_long: problems that left no room for a response; they count as wrong.
        tokens: mean length of a response.
        outcomes: responses by verdict.
        values: per problem, the value whose mean is the headline.
    """

    problems: int
    unscored: int
    samples: int
    average: Estimate
    best: Estimate
    majority: Estimate
    pass_at: Mapping[int, Estimate]
    truncated: float
    no_answer: float
    too_long: int
    tokens: float
    outcomes: Mapping[str, int]
    headline: Headline
    values: Mapping[str, float]

    @property
    def main(self) -> Estimate:
        """The figure that stands for the benchmark."""
        return self.best if self.headline == "best" else self.average

    @property
    def metric(self) -> str:
        """Its name, such as `avg@1`."""
        return f"{self.headline}@{self.samples}"


def answers_of(pool: Pool, agent: str) -> list[Answer]:
    """The answers of one agent of a pool, by problem, then sample."""
    return [Answer.of(pool.prompts[row.rollout.prompt], row) for row in pool.of(agent)]


def scores(answers: Sequence[Answer], headline: Headline = "avg") -> Scores | None:
    """Score answers; None if none of them could be scored.

    A problem some of whose responses are unscored counts by the others; pass@j then needs j of
    them, and takes all if there are fewer.
    """
    groups = _by_problem(answer for answer in answers if answer.reward is not None)
    if not groups:
        return None
    right = {problem: sum(a.right for a in group) for problem, group in groups.items()}
    average = {problem: right[problem] / len(group) for problem, group in groups.items()}
    best = {problem: float(count > 0) for problem, count in right.items()}
    samples = max(answer.sample for answer in answers) + 1
    outcomes = Counter(answer.outcome for answer in answers)
    return Scores(
        problems=len(groups),
        unscored=sum(answer.reward is None for answer in answers),
        samples=samples,
        average=estimate(list(average.values())),
        best=estimate(list(best.values())),
        majority=estimate([_majority(group) for group in groups.values()]),
        pass_at={
            j: estimate(
                [pass_at(min(j, len(g)), right[problem], len(g)) for problem, g in groups.items()]
            )
            for j in _sizes(samples)
        },
        truncated=sum(not a.finished and not a.too_long for a in answers) / len(answers),
        no_answer=outcomes[Outcome.NO_ANSWER] / len(answers),
        too_long=len({answer.problem for answer in answers if answer.too_long}),
        tokens=statistics.fmean(answer.tokens for answer in answers),
        outcomes=dict(outcomes),
        headline=headline,
        values=best if headline == "best" else average,
    )


def _by_problem(answers: Iterable[Answer]) -> dict[str, list[Answer]]:
    groups: dict[str, list[Answer]] = {}
    for answer in answers:
        groups.setdefault(answer.problem, []).append(answer)
    return groups


def _majority(group: Sequence[Answer]) -> float:
    right = {a.answer: a.right for a in group if a.answer is not None}
    return majority([answer.answer for answer in group], right)


def _sizes(samples: int) -> list[int]:
    """1, 2, 4, … and the number of samples itself."""
    return sorted({2**i for i in range(samples.bit_length()) if 2**i <= samples} | {samples})

"""The scorers of reasoning-gym. Some are slow or raise, so they run in workers only.

Their traps: a text that merely contains the right answer earns a part of the score, and some
generators give 0.01 for any number. So the answer is extracted first, by the rule of `extract`, and
a score below the threshold is wrong. The scorer sees the answer with and without markup around it;
the better score counts. A few scorers accept any answer to some problems: the audit names those.
"""

from __future__ import annotations

import difflib
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from hacrl.errors import UserError
from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify.base import Case, Verifier
from hacrl.verify.extract import whole_answer
from hacrl.verify.lines import bare

__all__ = ["ReasoningGym", "check_name"]

_Scorer = Callable[[str, dict[str, Any]], float]
_NAME = "source_dataset"
"""Where reasoning-gym's metadata holds the generator's name."""


class _Entry(NamedTuple):
    name: str
    problem: bytes
    answer: str


@dataclass(frozen=True, slots=True)
class ReasoningGym(Verifier):
    """Right if the generator's own scorer gives the threshold or more.

    Args:
        name: the generator; None takes the one that the problem carries.
        marker: text after which an answer stands; None if the whole response is the answer.
        threshold: smallest score, in (0, 1], of a right answer.
        partial: whether the reward follows the score, from `wrong` at 0 to `correct` at 1, instead
            of being one of the two.
        correct, wrong: rewards.
    """

    name: str | None = None
    marker: str | None = "####"
    threshold: float = 1.0
    partial: bool = False
    correct: float = 1.0
    wrong: float = 0.0

    def screen(self, prompt: Prompt, response: str) -> Verdict | Case:
        """Decides responses without an answer.

        Raises:
            ValueError: neither the verifier nor the problem names a generator.
        """
        answer = whole_answer(response, self.marker)
        if not answer:
            return self.verdict(Outcome.NO_ANSWER)
        name = self.name or prompt.metadata.get(_NAME)
        if not isinstance(name, str):
            raise ValueError("the problem names no generator; set the verifier's key `name`")
        problem = {
            "question": prompt.text,
            "answer": prompt.gold,
            "metadata": {**prompt.metadata, _NAME: name},
        }
        return _Entry(name, pickle.dumps(problem), answer)

    def judge(self, case: Case) -> Verdict:
        """Whatever the scorer raises is raised, unless it is the answer's fault.

        Some scorers raise on answers in a form that they cannot read. Such an answer is wrong if
        the scorer is content with the reference answer.
        """
        assert isinstance(case, _Entry)
        scorer, problem = _scorer(case.name), pickle.loads(case.problem)
        # Markup around an answer is no part of it, unless the scorer wants it there.
        score = max(_score(scorer, text, problem) for text in {case.answer, bare(case.answer)})
        if not 0.0 <= score <= 1.0:
            raise ValueError(f"the scorer of {case.name} gave {score:g}, which is not in [0, 1]")
        outcome = Outcome.RIGHT if score >= self.threshold else Outcome.WRONG
        if not self.partial:
            return self.verdict(outcome, case.answer)
        return Verdict(self.wrong + score * (self.correct - self.wrong), outcome, case.answer)

    def prepare(self) -> None:
        """Imports reasoning-gym, which takes a second or two."""
        if self.name is None:
            import reasoning_gym  # noqa: F401
        else:
            _scorer(self.name)


def _score(scorer: _Scorer, answer: str, problem: dict[str, Any]) -> float:
    """The scorer's word on an answer: 0 if it raises on that, but not on the reference answer."""
    try:
        return float(scorer(answer, problem))
    except Exception:  # noqa: BLE001 - they raise anything
        scorer(problem["answer"], problem)
        return 0.0


def check_name(name: str) -> None:
    """See whether there is such a generator.

    Raises:
        UserError: there is none.
    """
    from reasoning_gym.factory import DATASETS

    if name not in DATASETS:
        near = difflib.get_close_matches(name, DATASETS, n=3) or sorted(DATASETS)[:3]
        raise UserError(f"reasoning-gym has no generator {name!r}; did you mean {', '.join(near)}?")


@lru_cache(maxsize=256)  # each call builds a generator
def _scorer(name: str) -> _Scorer:
    from reasoning_gym import get_score_answer_fn

    scorer: _Scorer = get_score_answer_fn(name)
    return scorer

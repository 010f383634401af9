"""A user's own function as a verifier."""

from __future__ import annotations

import asyncio
import inspect
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple

from hacrl.functions import resolve
from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify.base import Case, Verifier

__all__ = ["Function", "resolve"]


class _Call(NamedTuple):
    prompt: bytes
    response: str


@dataclass(frozen=True, slots=True)
class Function(Verifier):
    """Whatever the user's function says.

    It is called as `function(prompt, response)` with a `hacrl.records.Prompt` and a string, or, if
    `size` is given, as `function(prompts, responses)` with lists of up to that length. For each
    response it returns a bool (right or wrong), a number (the reward), a `hacrl.records.Verdict`,
    or None (not verifiable). It may be `async`.

    Args:
        function: `module:function`.
        size: responses per call; None for calls with a single one.
        threshold: a number from here on is right.
        lowest: a smaller number is a scorer error.
        correct, wrong: rewards that stand for True and False.
    """

    slow: ClassVar[bool] = True  # what it does is not known

    function: str
    size: int | None = None
    threshold: float = 1.0
    lowest: float = 0.0
    correct: float = 1.0
    wrong: float = 0.0

    @property
    def batch(self) -> int | None:
        """Responses per call."""
        return self.size

    def screen(self, prompt: Prompt, response: str) -> Case:
        """Decides nothing."""
        return _Call(pickle.dumps(prompt), response)

    def judge(self, case: Case) -> Verdict:
        """Whatever the function raises is raised, as is a result that means nothing."""
        return self.judge_batch([case])[0]

    def judge_batch(self, cases: Sequence[Case]) -> list[Verdict]:
        """One call of the function, if it takes lists."""
        calls = [case for case in cases if isinstance(case, _Call)]
        prompts: list[Prompt] = [pickle.loads(call.prompt) for call in calls]
        responses = [call.response for call in calls]
        function = resolve(self.function)
        if self.size is None:
            results = [_result(function(*pair)) for pair in zip(prompts, responses, strict=True)]
        else:
            results = list(_result(function(prompts, responses)))
            if len(results) != len(cases):
                raise ValueError(
                    f"{self.function} returned {len(results)} results for {len(cases)} responses"
                )
        return [self._read(result) for result in results]

    def prepare(self) -> None:
        """Imports the user's module."""
        resolve(self.function)

    def _read(self, result: Any) -> Verdict:
        if hasattr(result, "item"):  # a number of numpy's or torch's
            result = result.item()
        if isinstance(result, Verdict):
            if result.reward is not None and result.reward < self.lowest:
                raise ValueError(f"{self.function} gave {result.reward:g}, less than lowest")
            return result
        if result is None:
            return self.verdict(Outcome.NOT_VERIFIABLE)
        if isinstance(result, bool):
            return self.verdict(Outcome.RIGHT if result else Outcome.WRONG)
        if isinstance(result, Real):
            return self.scored(float(result), threshold=self.threshold, lowest=self.lowest)
        raise TypeError(
            f"{self.function} returned {type(result).__name__}; "
            "it may return bool, a number, Verdict or None"
        )


def _result(value: Any) -> Any:
    return asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value


async def _awaited(value: Any) -> Any:
    return await value

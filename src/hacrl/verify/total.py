"""The weighted sum of several verifiers."""

from __future__ import annotations

from dataclasses import dataclass

from hacrl.records import Prompt, Verdict
from hacrl.verify.base import Case, Verifier

__all__ = ["Total"]


@dataclass(frozen=True)
class Total(Verifier):
    """Rewards Σ weight · reward. The first part gives outcome and answer.

    If a part cannot score the response, the whole is unscored, for the reason of that part. A time
    limit is that of the whole; a response that exceeds it earns what is wrong for every part.

    Args:
        parts: at least one.
        weights: one for each part, not negative.
    """

    parts: tuple[Verifier, ...]
    weights: tuple[float, ...]

    @property
    def correct(self) -> float:  # type: ignore[override]
        """Reward of a response that is right for every part."""
        return self._sum([part.correct for part in self.parts])

    @property
    def wrong(self) -> float:  # type: ignore[override]
        """Reward of a response that is wrong for every part."""
        return self._sum([part.wrong for part in self.parts])

    @property
    def slow(self) -> bool:  # type: ignore[override]
        """Whether a part is."""
        return any(part.slow for part in self.parts)

    @property
    def extra_seconds(self) -> float:
        """What the parts may take together."""
        return sum(part.extra_seconds for part in self.parts)

    def screen(self, prompt: Prompt, response: str) -> Verdict | Case:
        """Decides what all parts decide."""
        screened = tuple(part.screen(prompt, response) for part in self.parts)
        verdicts = [result for result in screened if isinstance(result, Verdict)]
        return self._combine(verdicts) if len(verdicts) == len(screened) else screened

    def judge(self, case: Case) -> Verdict:
        """Judges what is left, part by part; the first that raises, raises for the whole."""
        assert isinstance(case, tuple)
        return self._combine(
            [
                result if isinstance(result, Verdict) else part.judge(result)
                for part, result in zip(self.parts, case, strict=True)
            ]
        )

    @property
    def libraries(self) -> frozenset[str]:
        """Those of every part."""
        return frozenset().union(*(part.libraries for part in self.parts))

    def prepare(self) -> None:
        """Prepares every part."""
        for part in self.parts:
            part.prepare()

    def wrong_responses(self, prompt: Prompt) -> dict[str, str]:
        """Those of the first part, which says what is right."""
        return self.parts[0].wrong_responses(prompt)

    def why_not_verifiable(self, prompt: Prompt) -> str | None:
        """The first reason of a part."""
        reasons = (part.why_not_verifiable(prompt) for part in self.parts)
        return next((reason for reason in reasons if reason is not None), None)

    def _combine(self, verdicts: list[Verdict]) -> Verdict:
        for verdict in verdicts:
            if verdict.reward is None:
                return verdict
        total = self._sum([verdict.reward or 0.0 for verdict in verdicts])
        return Verdict(total, verdicts[0].outcome, verdicts[0].answer)

    def _sum(self, rewards: list[float]) -> float:
        return sum(w * reward for w, reward in zip(self.weights, rewards, strict=True))

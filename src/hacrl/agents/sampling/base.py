"""What draws an agent's responses, behind one protocol."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hacrl.errors import NotFinite
from hacrl.records import Decoding

__all__ = ["Sample", "Sampler", "check_finite"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One response: ids up to and including the end token, their log-probabilities in nats."""

    token_ids: list[int]
    logprobs: list[float]
    finished: bool


class Sampler(Protocol):
    """Draws responses from a policy as its weights are now."""

    @property
    def positions(self) -> int | None:
        """Tokens of prompt and response that it can address, None if unlimited."""

    @property
    def exact(self) -> bool:
        """Whether its log-probabilities are as good as the learner's own."""

    def sample(
        self, prompts: Sequence[list[int]], group_size: int, decoding: Decoding, seed: int
    ) -> list[list[Sample]]:
        """`group_size` responses to each prompt, as [prompts][group_size].

        To be called with the policy active.

        Args:
            prompts: token ids.
            seed: determines every draw.
        """

    def weights_changed(self) -> None:
        """The policy is not what it was: what comes next is to be drawn from the new weights."""

    def metrics(self) -> Mapping[str, float | None]:
        """Of the time since the weights last changed; see `docs/metrics.md`. None is a gap."""

    def close(self) -> None:
        """Free what it holds. It draws no more."""


def check_finite(name: str, samples: Iterable[Sample]) -> None:
    """See that an agent's samples were drawn from a distribution.

    Raises:
        NotFinite: a log-probability is no finite number, as every one is where a logit is not a
            number, or where none is finite.
    """
    for sample in samples:
        place = next(
            (t for t, value in enumerate(sample.logprobs) if not math.isfinite(value)), None
        )
        if place is not None:
            raise NotFinite(
                f"agent {name}: its logits are not finite at token {place} of a response, so "
                "nothing can be sampled from it"
            )

"""What draws an agent's responses, behind one protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from hacrl.agents.policy.policy import Policy
from hacrl.agents.sampling.hugging_face import Sample, sample
from hacrl.config.schema import Recipe
from hacrl.records import Decoding

__all__ = ["HuggingFaceSampler", "Sampler", "make_sampler"]


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


class HuggingFaceSampler:
    """The policy's own model draws, so there is nothing to keep in step. See `Sampler`.

    Args:
        gather: see `sample`.
    """

    exact = True

    def __init__(self, policy: Policy, *, gather: bool = False) -> None:
        self._policy = policy
        self._gather = gather

    @property
    def positions(self) -> int | None:
        return self._policy.max_tokens

    def sample(
        self, prompts: Sequence[list[int]], group_size: int, decoding: Decoding, seed: int
    ) -> list[list[Sample]]:
        return sample(
            self._policy,
            prompts,
            group_size,
            temperature=decoding.temperature,
            max_new_tokens=decoding.max_new_tokens,
            batch_size=decoding.batch_size,
            seed=seed,
            greedy=decoding.greedy,
            gather=self._gather,
        )

    def weights_changed(self) -> None: ...

    def metrics(self) -> dict[str, float | None]:
        return {"probe_gap": None, "sync_seconds": None}

    def close(self) -> None: ...


def make_sampler(policy: Policy, recipe: Recipe) -> Sampler:
    """The sampler that the recipe wants for the policy's agent, ready to draw.

    Raises:
        UserError: it cannot be started, or cannot serve the model.
    """
    settings = recipe.models[policy.name].sampler
    if settings.type == "hf":
        return HuggingFaceSampler(policy, gather=settings.gather)
    from hacrl.agents.sampling.vllm.sampler import VllmSampler

    return VllmSampler(policy, settings, recipe)

"""The sampler that a recipe names."""

from __future__ import annotations

from hacrl.agents.policy.policy import Policy
from hacrl.agents.sampling.base import Sampler
from hacrl.agents.sampling.hugging_face import HuggingFaceSampler
from hacrl.config.schema import Recipe

__all__ = ["make_sampler"]


def make_sampler(policy: Policy, recipe: Recipe) -> Sampler:
    """The sampler that the recipe wants for the policy's agent, ready to draw.

    Raises:
        UserError: it cannot be started, or cannot serve the model.
    """
    settings = recipe.agents[policy.name].sampler
    if settings.type == "hf":
        return HuggingFaceSampler(policy, gather=settings.gather)
    from hacrl.agents.sampling.vllm.sampler import VllmSampler

    return VllmSampler(policy, settings, recipe)

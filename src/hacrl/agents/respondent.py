"""What answers prompts: an agent as far as it does not learn."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from hacrl.agents.policy.encoding import decode_response, encode_prompt
from hacrl.agents.policy.loading import SharedModels, find_device, load_policy
from hacrl.agents.policy.openings import find_opening
from hacrl.agents.policy.policy import Policy
from hacrl.agents.policy.reading import Reading, read
from hacrl.agents.policy.residence import Residence
from hacrl.agents.policy.sharding import ALONE, Share, shard
from hacrl.agents.sampling.base import Sample, Sampler
from hacrl.agents.sampling.hugging_face import HuggingFaceSampler
from hacrl.agents.sampling.making import make_sampler
from hacrl.config.schema import Recipe
from hacrl.records import Decoding, Prompt, Rollout, Turn
from hacrl.seeding import derive_seed

__all__ = ["Respondent", "open_policy", "training_decoding"]


class Respondent:
    """Answers prompts with a policy. See `Participant`.

    Args:
        policy: model and tokenizer.
        decoding: how it draws responses by default.
        seed: of the run.
        sampler: draws them; None lets the policy's own model do it.
        residence: where the model is while it works; None: it stays where it is.
    """

    def __init__(
        self,
        policy: Policy,
        decoding: Decoding,
        seed: int,
        sampler: Sampler | None = None,
        residence: Residence | None = None,
    ) -> None:
        self.name = policy.name
        self.version = 0
        self._policy = policy
        self._decoding = decoding
        self._seed = seed
        self._sampler = sampler or HuggingFaceSampler(policy)
        self._residence = residence or Residence([policy.model], None, None)
        self._prompt_ids: dict[tuple[Turn, ...], list[int]] = {}
        self._openings: dict[tuple[Turn, ...], str] = {}
        self._drawn: dict[tuple[int, int], Sample] = {}  # by prompt and sample, of the last draw

    @classmethod
    def from_recipe(
        cls,
        name: str,
        recipe: Recipe,
        tokenizer: PreTrainedTokenizerBase | None = None,
        shared: SharedModels | None = None,
        share: Share = ALONE,
    ) -> Respondent:
        """Load an agent that does not learn, as the recipe describes it. See `open_policy`."""
        policy = open_policy(name, recipe, tokenizer, shared, share)
        turns_on = find_device(name, recipe.models[name].device) if recipe.fleet.in_turns else None
        return cls(
            policy,
            training_decoding(recipe),
            recipe.seed,
            make_sampler(policy, recipe),
            Residence([policy.model], None, turns_on),
        )

    @property
    def positions(self) -> int | None:
        """Tokens of prompt and response that the sampler can address, None if unlimited."""
        return self._sampler.positions

    def prompt_lengths(self, prompts: Sequence[Prompt]) -> list[int]:
        """Tokens of each prompt under this agent's own template."""
        return [len(self.encode(prompt)) for prompt in prompts]

    def read(self, prompts: Sequence[Prompt]) -> Reading:
        """What is worth saying about how it reads the prompts."""
        return read(self._policy, prompts)

    def sample(
        self,
        prompts: Sequence[Prompt],
        group_size: int,
        *,
        occasion: str,
        decoding: Decoding | None = None,
    ) -> list[Rollout]:
        """Draw `group_size` responses to each prompt.

        Args:
            occasion: names the draw, such as `step 3`. The same occasion draws the same numbers;
                nothing else depends on it, and torch's random state is left alone.
            decoding: other than in training. Without it the tokens are kept until the next such
                draw, to be learned from.
        """
        how = decoding or self._decoding
        with self._residence.awake(learning=False):
            self._policy.activate()
            groups = self._sampler.sample(
                [self.encode(prompt) for prompt in prompts],
                group_size,
                how,
                derive_seed(self._seed, "sample", self.name, occasion),
            )
        if decoding is None:
            self._drawn = {
                (position, number): sample
                for position, group in enumerate(groups)
                for number, sample in enumerate(group)
            }
        rollouts = []
        for position, group in enumerate(groups):
            opening = self.opening(prompts[position])
            for number, sample in enumerate(group):
                text, unshareable = decode_response(self._policy, sample.token_ids, sample.finished)
                rollouts.append(
                    Rollout(
                        prompt=position,
                        agent=self.name,
                        sample=number,
                        policy_version=self.version,
                        text=opening + text,
                        logprob=math.fsum(sample.logprobs),
                        length=len(sample.token_ids),
                        finished=sample.finished,
                        unshareable=unshareable,
                    )
                )
        return rollouts

    def close(self) -> None:
        """End what samples for it, where that is a process of its own."""
        self._sampler.close()

    def encode(self, prompt: Prompt) -> list[int]:
        """Ids of a prompt under this agent's own template, made once."""
        key = prompt.turns
        if key not in self._prompt_ids:
            self._prompt_ids[key] = encode_prompt(self._policy, prompt)
        return self._prompt_ids[key]

    def opening(self, prompt: Prompt) -> str:
        """The opening of reasoning in which this agent's form of a prompt ends; "" if in none.

        Each of its responses begins with it, though it is drawn by none: see `Rollout.text`.
        """
        key = prompt.turns
        if key not in self._openings:
            self._openings[key] = find_opening(self._policy, prompt, self.encode(prompt))
        return self._openings[key]


def open_policy(
    name: str,
    recipe: Recipe,
    tokenizer: PreTrainedTokenizerBase | None,
    shared: SharedModels | None,
    share: Share,
) -> Policy:
    """Load the model of an agent as the recipe describes it, without gradients if it is not to
    learn.

    Args:
        tokenizer: if it has been loaded already.
        shared: where agents with adapters find models that others have loaded.
        share: which of the agent's ranks this is. All of them load it together.

    Raises:
        UserError: the model cannot be loaded or used.
    """
    spec = recipe.models[name]
    # An agent of several ranks is loaded into host memory, since no device need have room for it.
    here = spec if share.size == 1 else spec.model_copy(update={"device": "cpu"})
    loaded = load_policy(name, here, tokenizer, seed=recipe.seed, shared=shared, clock=recipe.clock)
    policy = dataclasses.replace(loaded, share=share)
    if not spec.learns:
        if policy.adapter is None:  # else its model may be others' as well, and is frozen anyway
            policy.model.requires_grad_(False)
        if share.size > 1:
            shard(policy.model, share.size, find_device(name, spec.device))
    return policy


def training_decoding(recipe: Recipe) -> Decoding:
    """How responses are drawn in training."""
    how = recipe.sampling
    return Decoding(how.max_new_tokens, how.batch_size, temperature=how.temperature)

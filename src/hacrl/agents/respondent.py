"""What answers prompts: an agent as far as it does not learn."""

from __future__ import annotations

from collections.abc import Sequence

from hacrl.agents.policy.encoding import decode_response, encode_prompt
from hacrl.agents.policy.openings import find_opening
from hacrl.agents.policy.policy import Policy
from hacrl.agents.policy.reading import Reading, read
from hacrl.agents.sampling.base import Sampler
from hacrl.agents.sampling.hugging_face import HuggingFaceSampler
from hacrl.records import Decoding, Prompt, Rollout, Turn
from hacrl.seeding import derive_seed

__all__ = ["Respondent"]


class Respondent:
    """Answers prompts with a policy.

    Args:
        policy: model and tokenizer.
        decoding: how it draws responses unless told otherwise.
        seed: of the run.
        sampler: draws them; None lets the policy's own model do it.
    """

    def __init__(
        self, policy: Policy, decoding: Decoding, seed: int, sampler: Sampler | None = None
    ) -> None:
        self.name = policy.name
        self.version = 0
        self._policy = policy
        self._decoding = decoding
        self._seed = seed
        self._sampler = sampler or HuggingFaceSampler(policy)
        self._prompt_ids: dict[tuple[Turn, ...], list[int]] = {}
        self._openings: dict[tuple[Turn, ...], str] = {}

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
            decoding: other than in training.
        """
        self._policy.activate()
        how = decoding or self._decoding
        groups = self._sampler.sample(
            [self.encode(prompt) for prompt in prompts],
            group_size,
            how,
            derive_seed(self._seed, "sample", self.name, occasion),
        )
        rollouts = []
        for position, group in enumerate(groups):
            opening = self.opening(prompts[position])
            for number, one in enumerate(group):
                text, unshareable = decode_response(self._policy, one.token_ids, one.finished)
                rollouts.append(
                    Rollout(
                        prompt=position,
                        agent=self.name,
                        sample=number,
                        policy_version=self.version,
                        text=opening + text,
                        token_ids=tuple(one.token_ids),
                        token_logprobs=tuple(one.logprobs),
                        finished=one.finished,
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

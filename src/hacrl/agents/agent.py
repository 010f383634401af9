"""The agent: samples, learns and is saved. A plain class; a fleet decides where it lives."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from pathlib import Path

import torch

from hacrl.advantages import advantages
from hacrl.agents.encoding import decode_response, encode_prompt
from hacrl.agents.learner import Learner
from hacrl.agents.lessons import make_lessons
from hacrl.agents.loading import load_policy
from hacrl.agents.policy import Policy, save_policy
from hacrl.agents.reporting import LearnReport, make_report
from hacrl.agents.sampling import sample
from hacrl.config.schema import Advantage, Recipe, Sampling
from hacrl.records import Pool, Prompt, Rollout
from hacrl.seeding import derive_seed

__all__ = ["Agent"]


class Agent:
    """One participant of a run.

    Args:
        policy: model and tokenizer.
        learner: trains the policy in place.
        sources: names of the peers that it learns from.
        sharing: for every agent of the run, whom it learns from; decides the baselines.
        sampling: how it draws responses.
        advantage: how it judges them.
        seed: of the run.
    """

    def __init__(
        self,
        policy: Policy,
        learner: Learner,
        *,
        sharing: dict[str, tuple[str, ...]],
        sampling: Sampling,
        advantage: Advantage,
        seed: int,
    ) -> None:
        self.name = policy.name
        self.version = 0
        self._policy = policy
        self._learner = learner
        self._sharing = sharing
        self._sampling = sampling
        self._advantage = advantage
        self._seed = seed
        self._prompt_ids: dict[tuple[str | None, str], list[int]] = {}

    @classmethod
    def from_recipe(cls, name: str, recipe: Recipe) -> Agent:
        """Load the agent of that name as the recipe describes it.

        Raises:
            UserError: the model cannot be loaded or used.
        """
        spec = recipe.agents[name]
        policy = load_policy(name, spec)
        optimizer = recipe.optimizer
        if spec.learning_rate is not None:
            optimizer = optimizer.model_copy(update={"learning_rate": spec.learning_rate})
        learner = Learner(
            policy,
            _frozen_copy(policy) if recipe.update.kl > 0 else None,
            temperature=recipe.sampling.temperature,
            mini_batches=recipe.mini_batches,
            ratio=recipe.ratio,
            clip=recipe.clip,
            update=recipe.update,
            optimizer=optimizer,
            total_updates=recipe.steps * recipe.updates_per_step(name),
        )
        return cls(
            policy,
            learner,
            sharing={agent: recipe.sources(agent) for agent in recipe.agents},
            sampling=recipe.sampling,
            advantage=recipe.advantage,
            seed=recipe.seed,
        )

    @property
    def positions(self) -> int | None:
        """Tokens of prompt and response that the model can address, None if unlimited."""
        return self._policy.max_tokens

    def prompt_lengths(self, prompts: Sequence[Prompt]) -> list[int]:
        """Tokens of each prompt under this agent's own template."""
        return [len(self._encode(prompt)) for prompt in prompts]

    def sample(
        self,
        prompts: Sequence[Prompt],
        group_size: int,
        *,
        occasion: str,
        temperature: float | None = None,
    ) -> list[Rollout]:
        """Draw `group_size` responses to each prompt.

        Args:
            occasion: names the draw, such as `step 3`. The same occasion draws the same numbers;
                nothing else depends on it, and torch's random state is left alone.
            temperature: other than the training temperature.
        """
        groups = sample(
            self._policy,
            [self._encode(prompt) for prompt in prompts],
            group_size,
            temperature=temperature or self._sampling.temperature,
            max_new_tokens=self._sampling.max_new_tokens,
            batch_size=self._sampling.batch_size,
            seed=derive_seed(self._seed, "sample", self.name, occasion),
        )
        rollouts = []
        for position, group in enumerate(groups):
            for number, one in enumerate(group):
                text, unshareable = decode_response(self._policy, one.token_ids, one.finished)
                rollouts.append(
                    Rollout(
                        prompt=position,
                        agent=self.name,
                        sample=number,
                        policy_version=self.version,
                        text=text,
                        token_ids=tuple(one.token_ids),
                        token_logprobs=tuple(one.logprobs),
                        finished=one.finished,
                        unshareable=unshareable,
                    )
                )
        return rollouts

    def learn(self, pool: Pool, omega: Sequence[Sequence[float]]) -> LearnReport:
        """Update the policy from the pool of one step.

        Args:
            omega: ω(k,j) as [k][j], agents in the order of the pool.
        """
        k = pool.agents.index(self.name)
        judged = advantages(
            torch.tensor(pool.rewards(), dtype=torch.float64),
            torch.tensor(omega, dtype=torch.float64),
            self._members(pool.agents),
            **self._advantage.model_dump(),
        )
        sources = self._sharing[self.name]
        lessons = make_lessons(
            self._policy,
            pool,
            sources,
            dict(zip(pool.agents, judged.value_KJPG[k].tolist(), strict=True)),
            [self._encode(prompt) for prompt in pool.prompts],
        )
        rows, updates = self._learner.learn(lessons)
        self.version += len(updates)
        return make_report(self.name, sources, lessons, rows, updates, judged.baselines, k)

    def save(self, folder: Path) -> None:
        """Write the model as an ordinary Hugging Face folder."""
        save_policy(self._policy, folder)

    def _encode(self, prompt: Prompt) -> list[int]:
        key = (prompt.system, prompt.text)
        if key not in self._prompt_ids:
            self._prompt_ids[key] = encode_prompt(self._policy, prompt)
        return self._prompt_ids[key]

    def _members(self, agents: Sequence[str]) -> torch.Tensor:
        return torch.tensor([[k == j or j in self._sharing[k] for j in agents] for k in agents])


def _frozen_copy(policy: Policy) -> Policy:
    model = copy.deepcopy(policy.model).requires_grad_(False)
    return dataclasses.replace(policy, model=model)

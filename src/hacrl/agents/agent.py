"""The agent that learns: samples, learns and is saved. A plain class; a fleet decides where it
lives."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase

from hacrl.agents.learning.algorithm import recipe_algorithm
from hacrl.agents.learning.alignment import measure_alignment
from hacrl.agents.learning.learner import Learner
from hacrl.agents.learning.lessons import make_lessons
from hacrl.agents.learning.reporting import LearnReport, make_report
from hacrl.agents.policy.loading import SharedModels, find_device
from hacrl.agents.policy.policy import Policy, restore_policy, save_policy
from hacrl.agents.policy.residence import Residence
from hacrl.agents.policy.sharding import ALONE, Share, shard
from hacrl.agents.respondent import Respondent, open_policy, training_decoding
from hacrl.agents.sampling.base import Sampler
from hacrl.agents.sampling.making import make_sampler
from hacrl.config.schema import Recipe
from hacrl.records import Decoding, Pool

__all__ = ["STATE", "Agent", "frozen"]

STATE = "agent.json"
"""What a checkpoint has of an agent besides its policy and its learner."""


class Agent(Respondent):
    """A model that learns. See `LearningParticipant`.

    Args:
        policy: model and tokenizer.
        learner: trains the policy in place.
        decoding: how it draws responses in training.
        recompute: whether the log-probabilities of its own responses are recomputed for learning;
            None recomputes them when the sampler says that its own are not exact.
        alignment_every: steps between two measurements of `alignment`, None for never.
        mini_batches: M, own mini-batches a step.
        seed: of the run.
        sampler: draws its responses; None lets the policy's own model do it.
        turns_on: the device that it works on in turn with others; it is in host memory in between.
            None: it stays where it is.
    """

    def __init__(
        self,
        policy: Policy,
        learner: Learner,
        *,
        decoding: Decoding,
        recompute: bool | None,
        alignment_every: int | None,
        mini_batches: int,
        seed: int,
        sampler: Sampler | None = None,
        turns_on: torch.device | None = None,
    ) -> None:
        residence = Residence(learner.models, learner.optimizer, turns_on)
        super().__init__(policy, decoding, seed, sampler, residence)
        self._learner = learner
        self._recompute = recompute
        self._alignment_every = alignment_every
        self._mini_batches = mini_batches

    @classmethod
    def from_recipe(
        cls,
        name: str,
        recipe: Recipe,
        tokenizer: PreTrainedTokenizerBase | None = None,
        shared: SharedModels | None = None,
        share: Share = ALONE,
    ) -> Agent:
        """Load the agent of that name as the recipe describes it. See `open_policy`.

        Raises:
            UserError: the model cannot be loaded or used.
        """
        spec = recipe.models[name]
        policy = open_policy(name, recipe, tokenizer, shared, share)
        reference = frozen(policy) if recipe.update.kl > 0 else None
        if share.size > 1:
            for loaded in (policy, *([reference] if reference else [])):
                shard(loaded.model, share.size, find_device(name, spec.device))
        optimizer = recipe.optimizer
        if spec.learning_rate is not None:
            optimizer = optimizer.model_copy(update={"learning_rate": spec.learning_rate})
        learner = Learner(
            policy,
            reference,
            temperature=recipe.sampling.temperature,
            algorithm=recipe_algorithm(recipe),
            mini_batches=recipe.mini_batches,
            update=recipe.update,
            optimizer=optimizer,
            total_updates=recipe.steps * recipe.updates_per_step(name),
        )
        return cls(
            policy,
            learner,
            decoding=training_decoding(recipe),
            recompute=recipe.recomputes(name),
            alignment_every=recipe.update.alignment_every,
            mini_batches=recipe.mini_batches,
            seed=recipe.seed,
            sampler=make_sampler(policy, recipe),
            turns_on=find_device(name, spec.device) if recipe.fleet.in_turns else None,
        )

    def learn(self, pool: Pool, advantage: Mapping[str, Sequence[Sequence[float]]]) -> LearnReport:
        """Update the policy from the pool of one step.

        Args:
            advantage: for itself and every source that it learns from, advantages as
                [prompts][samples]; NaN where it does not use a response.
        """
        with self._residence.awake(learning=True):
            return self._learn(pool, advantage)

    def save(self, folder: Path) -> None:
        """Write the model, or its adapter, as an ordinary Hugging Face folder.

        Raises:
            UserError: the adapter cannot be loaded again.
        """
        save_policy(self._policy, folder)
        if self._policy.adapter is not None:
            from hacrl.agents.policy.adapters import try_adapter

            try_adapter(self._policy.adapter, self._policy.model, folder)

    def checkpoint(self, folder: Path) -> None:
        """Write all that this agent continues from: besides its weights, its optimizer."""
        save_policy(self._policy, folder)
        self._learner.save(folder)
        text = json.dumps({"version": self.version}) + "\n"
        self._policy.share.write(lambda: (folder / STATE).write_text(text, "utf-8"))

    def restore(self, folder: Path) -> None:
        """Continue from what `checkpoint` wrote. Executes no code from the folder.

        Raises:
            UserError: it cannot be read, or does not fit this agent.
        """
        restore_policy(self._policy, folder)
        self._learner.restore(folder)
        self.version = json.loads((folder / STATE).read_text("utf-8"))["version"]
        self._sampler.weights_changed()

    def _learn(self, pool: Pool, advantage: Mapping[str, Sequence[Sequence[float]]]) -> LearnReport:
        self._policy.activate()
        sources = tuple(name for name in advantage if name != self.name)
        lessons = make_lessons(
            self._policy,
            pool,
            advantage,
            [self.encode(prompt) for prompt in pool.prompts],
            self._drawn,
            [self.opening(prompt) for prompt in pool.prompts],
        )
        recompute = self._recompute
        if recompute is None:
            recompute = not self._sampler.exact
        if recompute:
            lessons = self._learner.recompute(lessons)
        measured = {}
        if self._alignment_every and pool.step % self._alignment_every == 0:
            measured = measure_alignment(
                self._learner, lessons, self.name, sources, self._mini_batches
            )
        rows, updates = self._learner.learn(lessons)
        self.version += sum(not update.skipped for update in updates)
        report = make_report(
            self.name,
            sources,
            lessons,
            rows,
            updates,
            skipped_in_a_row=self._learner.skipped_in_a_row,
            reduced_micro_batch_tokens=self._learner.reduced_micro_batch_tokens,
        )
        measured |= self._sampler.metrics()
        self._sampler.weights_changed()
        return dataclasses.replace(report, metrics=report.metrics | measured)


def frozen(policy: Policy) -> Policy:
    """The policy as it starts. Where an adapter is trained, its model without it is all it takes.

    An adapter that the recipe starts from is no part of that reference, as in TRL.
    """
    if policy.adapter is not None:
        return dataclasses.replace(policy, adapter=None)
    model = copy.deepcopy(policy.model).requires_grad_(False)
    return dataclasses.replace(policy, model=model)

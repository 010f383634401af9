"""Held-out accuracy of the demo's agents while HACPO, or TRL's GSPO, trains them.

Both start from the same weights, see the same prompts in the same order and draw the same number of
responses a step. Evaluations are not timed.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset  # type: ignore[import-untyped]
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from benchmarks.speed.crossing import Point
from benchmarks.speed.with_trl import settings
from hacrl.agents.learning.algorithm import recipe_algorithm
from hacrl.agents.policy.loading import load_policy
from hacrl.agents.policy.policy import Policy
from hacrl.agents.respondent import Respondent
from hacrl.algorithm.capability import CapabilityTracker
from hacrl.config import Recipe, load_recipe
from hacrl.fleet import LocalFleet
from hacrl.paths import BUNDLED, resolve
from hacrl.records import Decoding, Outcome, Prompt, Rollout
from hacrl.tasks import PromptStream, load_prompts, load_task
from hacrl.training.loop import by_learner, joint_set
from hacrl.verify import Exact, make_pool
from hacrl.verify.rollouts import verify_rollouts

__all__ = ["Hacpo", "Trl", "demo_recipe", "train_hacpo", "train_trl"]

EVERY = 5
"""Steps between evaluations."""
SAMPLES = 4
"""Responses to each held-out problem."""
ROWS = 64
"""Of a forward and backward pass of TRL."""


@dataclass(frozen=True, slots=True)
class Hacpo:
    """Args:
    rates: learning rate of each agent.
    mini_batches: M, updates from an agent's own responses; as many from its peer's follow.
    """

    rates: Mapping[str, float]
    mini_batches: int


@dataclass(frozen=True, slots=True)
class Trl:
    """Args:
    agent: who is trained.
    mini_batches: updates in one pass over the responses of a step.
    passes: over them.
    """

    agent: str
    rate: float
    mini_batches: int = 1
    passes: int = 1


class _Clock:
    """Seconds of wall and processor time, without those of evaluations."""

    def __init__(self) -> None:
        self.seconds = self.cpu = 0.0
        self.run()

    def run(self) -> None:
        self._begun = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        self.seconds += time.perf_counter() - self._begun[0]
        self.cpu += time.process_time() - self._begun[1]

    def point(
        self, step: int, answers: Mapping[str, Sequence[Rollout]], problems: Sequence[Prompt]
    ) -> Point:
        accuracy = {agent: _accuracies(own, problems) for agent, own in answers.items()}
        return Point(step, round(self.seconds, 2), round(self.cpu, 2), accuracy)


def demo_recipe(seed: int, *overrides: str) -> Recipe:
    """The demo's recipe, whose steps, prompts and sampling both sides follow."""
    return load_recipe(resolve(f"{BUNDLED}recipes/demo.yaml"), [f"seed={seed}", *overrides])


def _stream(recipe: Recipe) -> PromptStream:
    return PromptStream(
        load_prompts(recipe.tasks),
        recipe.prompts_per_step,
        recipe.seed,
        {name: task.weight for name, task in recipe.tasks.items()},
    )


def _problems(recipe: Recipe) -> tuple[Prompt, ...]:
    ((name, task),) = recipe.tasks.items()
    path = f"{BUNDLED}demo/assets/heldout.jsonl"
    return load_task(
        name,
        task.model_copy(update={"source": task.source.model_copy(update={"path": path})}),
    )


def _accuracies(answers: Sequence[Rollout], problems: Sequence[Prompt]) -> tuple[float, float]:
    """On even problems, which choose the learning rate, and on odd ones, which measure."""
    exact = Exact()
    right: tuple[list[bool], list[bool]] = ([], [])
    for answer in answers:
        verdict = exact(problems[answer.prompt], answer.text)
        right[answer.prompt % 2].append(verdict.outcome is Outcome.RIGHT)
    return statistics.mean(right[0]), statistics.mean(right[1])


def train_hacpo(setting: Hacpo, seed: int) -> list[Point]:
    """Both agents at once, from their start on."""
    torch.set_num_threads(1)
    recipe = demo_recipe(
        seed,
        f"update.mini_batches={setting.mini_batches}",
        *(f"agents.{name}.learning_rate={rate}" for name, rate in setting.rates.items()),
    )
    problems, stream = _problems(recipe), _stream(recipe)
    fleet = LocalFleet.from_recipe(recipe)
    capability = CapabilityTracker(fleet.agents, 5, "mean_reward", 10.0)
    algorithm = recipe_algorithm(recipe)
    sharing = {name: recipe.sources(name) for name in recipe.learners}
    points: list[Point] = []
    with make_pool(recipe.tasks, recipe.verification) as verifiers:
        clock = _Clock()
        for step in range(recipe.steps + 1):
            if step % EVERY == 0:
                clock.stop()
                answers = fleet.sample(problems, SAMPLES, occasion="held out")
                points.append(clock.point(step, answers, problems))
                clock.run()
            if step == recipe.steps:
                break
            batch = stream.batch(step)
            rollouts = fleet.sample(batch, recipe.group_size, occasion=f"step {step}")
            pool = verify_rollouts(step, batch, recipe.group_size, rollouts, verifiers)
            capability.observe(pool.rewards())
            judgement = algorithm.judge(joint_set(pool, capability.ratios(), sharing))
            fleet.learn(pool, by_learner(judgement, pool.agents, sharing))
    return points


class _Watch(TrainerCallback):
    """Stops the clock to evaluate.

    Args:
        updates: of the optimizer in a step.
    """

    def __init__(self, policy: Policy, problems: Sequence[Prompt], seed: int, updates: int) -> None:
        self.points: list[Point] = []
        self._policy, self._problems, self._seed = policy, problems, seed
        self._updates = updates
        self._clock = _Clock()

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        self._evaluate(0, kwargs["model"])

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        step, within = divmod(state.global_step, self._updates)
        if not within and step % EVERY == 0:
            self._clock.stop()
            self._evaluate(step, kwargs["model"])

    def _evaluate(self, step: int, model: PreTrainedModel) -> None:
        now = dataclasses.replace(self._policy, model=model)
        answers = Respondent(now, Decoding(64, 256), self._seed).sample(
            self._problems, SAMPLES, occasion="held out"
        )
        self.points.append(self._clock.point(step, {now.name: answers}, self._problems))
        self._clock.run()


def train_trl(setting: Trl, seed: int, scratch: Path) -> list[Point]:
    """One agent by GSPO in TRL, from its start on."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    recipe = demo_recipe(seed)
    stream, exact = _stream(recipe), Exact()
    asked = [prompt for step in range(recipe.steps) for prompt in stream.batch(step)]
    policy = load_policy(setting.agent, recipe.models[setting.agent])
    updates = setting.mini_batches * setting.passes
    watch = _Watch(policy, _problems(recipe), seed, updates)

    def reward(
        prompts: Sequence[str], completions: Sequence[str], gold: Sequence[str], **_: Any
    ) -> list[float | None]:
        return [
            exact(Prompt("", "", asked_, right), text).reward
            for asked_, text, right in zip(prompts, completions, gold, strict=True)
        ]

    rows = recipe.prompts_per_step * recipe.group_size
    folder = resolve(recipe.models[setting.agent].model)
    GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder),
        reward_funcs=reward,
        args=GRPOConfig(
            output_dir=str(scratch),
            max_steps=recipe.steps * updates,
            seed=seed,
            steps_per_generation=rows // ROWS,
            num_iterations=setting.passes,
            **settings(
                rows // setting.mini_batches,
                ROWS,
                recipe.group_size,
                recipe.sampling.max_new_tokens,
                learning_rate=setting.rate,
                epsilon=recipe.clip.own_low,
                epsilon_high=recipe.clip.own_high,
            ),
        ),
        train_dataset=Dataset.from_list(
            [{"prompt": prompt.text, "gold": prompt.gold} for prompt in asked]
        ),
        processing_class=AutoTokenizer.from_pretrained(folder),
        callbacks=[watch],
    ).train()
    return watch.points

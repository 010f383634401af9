"""(g) Time and rollouts until both agents of the demo reach a given held-out accuracy.

HACPO co-trains both; TRL trains each by GSPO. All start from the same weights, see the same prompts
in the same order and draw the same number of responses a step. Every learning rate of one grid is
tried on each side, with the same seed; tuning problems choose between them, other problems measure.

The accuracy to reach is stated by the rule: of each agent, what TRL's GSPO at its best learning
rate has at its end. Accuracies are means over the last three evaluations, which are not timed.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset  # type: ignore[import-untyped]
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from benchmarks.speed.with_trl import settings
from hacrl.agents.loading import load_policy
from hacrl.agents.policy import Policy
from hacrl.agents.respondent import Respondent
from hacrl.capability import CapabilityTracker
from hacrl.config import Recipe, load_recipe
from hacrl.fleet import LocalFleet
from hacrl.loop import verify
from hacrl.paths import BUNDLED, resolve
from hacrl.records import Decoding, Outcome, Prompt, Rollout
from hacrl.tasks import PromptStream, load_prompts, load_task
from hacrl.verify import Exact, make_pool

__all__ = ["race"]

RATES = (3e-5, 1e-4, 3e-4, 1e-3)
EVERY = 5
"""Steps between evaluations."""
SAMPLES = 4
"""Responses to each held-out problem."""
SMOOTH = 3
"""Evaluations that are averaged."""

Point = dict[str, Any]
"""Steps and seconds so far, and each agent's accuracy on tuning and on measuring problems."""


def race(scratch: Path) -> dict[str, Any]:
    """Train everything, choose rates, and compare."""
    recipe = _recipe(RATES[0])
    agents, steps = list(recipe.agents), recipe.steps
    hacpo = {rate: _alone(_train_hacpo, rate, steps) for rate in RATES}
    trl = {
        agent: {rate: _alone(_train_trl, rate, agent, scratch / "trl", steps) for rate in RATES}
        for agent in agents
    }

    def best(runs: dict[float, list[Point]], names: Sequence[str]) -> float:
        return max(runs, key=lambda rate: sum(_ends(runs[rate], name, 0) for name in names))

    our_rate = best(hacpo, agents)
    rates = {agent: best(trl[agent], [agent]) for agent in agents}
    wanted = {agent: _ends(trl[agent][rates[agent]], agent, 1) for agent in agents}
    ours = [_reached(hacpo[our_rate], agent, wanted[agent]) for agent in agents]
    theirs = [_reached(trl[agent][rates[agent]], agent, wanted[agent]) for agent in agents]
    rows = recipe.prompts_per_step * recipe.group_size
    found: dict[str, Any] = {
        "grid": RATES,
        "rates": {"hacpo": our_rate, "trl": rates},
        "accuracy_to_reach": {agent: round(value, 3) for agent, value in wanted.items()},
        "at_the_end": {
            "hacpo": {a: round(_ends(hacpo[our_rate], a, 1), 3) for a in agents},
            "trl": {a: round(_ends(trl[a][rates[a]], a, 1), 3) for a in agents},
        },
        "steps_needed": {
            "hacpo": [point and point["step"] for point in ours],
            "trl": [point and point["step"] for point in theirs],
        },
    }
    if all(ours) and all(theirs):
        last = max((point for point in ours if point), key=lambda point: int(point["step"]))
        needed = [point for point in theirs if point]
        hacpo_rollouts = last["step"] * rows * len(agents)
        trl_rollouts = sum(point["step"] for point in needed) * rows
        found |= {
            "hacpo": {**_cost(last), "rollouts": hacpo_rollouts},
            "trl": {
                "seconds": round(sum(point["seconds"] for point in needed), 1),
                "cpu_seconds": round(sum(point["cpu"] for point in needed), 1),
                "rollouts": trl_rollouts,
            },
        }
        found["share_of_trl"] = {
            key: round(found["hacpo"][key] / found["trl"][key], 2) for key in found["hacpo"]
        }
    found["curves"] = {
        "hacpo": {str(rate): run for rate, run in hacpo.items()},
        "trl": {a: {str(rate): run for rate, run in runs.items()} for a, runs in trl.items()},
    }
    return found


def _cost(point: Point) -> dict[str, float]:
    return {"seconds": round(point["seconds"], 1), "cpu_seconds": round(point["cpu"], 1)}


def _smooth(run: Sequence[Point], agent: str, half: int, end: int) -> float:
    values: list[float] = [
        point["accuracy"][agent][half] for point in run[max(0, end - SMOOTH) : end]
    ]
    return statistics.mean(values)


def _ends(run: Sequence[Point], agent: str, half: int) -> float:
    return _smooth(run, agent, half, len(run))


def _reached(run: Sequence[Point], agent: str, wanted: float) -> Point | None:
    """The first evaluation by which the agent is as good as wanted."""
    for end in range(1, len(run) + 1):
        if _smooth(run, agent, 1, end) >= wanted:
            return run[end - 1]
    return None


def _alone(train: Callable[..., list[Point]], *args: Any) -> list[Point]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as worker:
        return worker.submit(train, *args).result()


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
        return {"step": step, "seconds": self.seconds, "cpu": self.cpu, "accuracy": accuracy}


def _recipe(rate: float) -> Recipe:
    return load_recipe(resolve(f"{BUNDLED}recipes/demo.yaml"), [f"optimizer.learning_rate={rate}"])


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


def _train_hacpo(rate: float, steps: int) -> list[Point]:
    torch.set_num_threads(1)
    recipe = _recipe(rate)
    problems, stream = _problems(recipe), _stream(recipe)
    fleet = LocalFleet.from_recipe(recipe)
    capability = CapabilityTracker(fleet.agents, 5, "mean_reward", 10.0)
    points: list[Point] = []
    with make_pool(recipe.tasks, recipe.verification) as verifiers:
        clock = _Clock()
        for step in range(steps):
            batch = stream.batch(step)
            rollouts = fleet.sample(batch, recipe.group_size, occasion=f"step {step}")
            pool = verify(step, batch, recipe.group_size, rollouts, verifiers)
            capability.observe(pool.rewards())
            fleet.learn(pool, capability.ratios())
            if (step + 1) % EVERY == 0:
                clock.stop()
                answers = fleet.sample(problems, SAMPLES, occasion="held out")
                points.append(clock.point(step + 1, answers, problems))
                clock.run()
    return points


class _Watch(TrainerCallback):
    """Stops the clock to evaluate."""

    def __init__(self, policy: Policy, problems: Sequence[Prompt]) -> None:
        self.points: list[Point] = []
        self._policy, self._problems = policy, problems
        self._clock = _Clock()

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        self._clock.run()

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        if state.global_step % EVERY == 0:
            self._clock.stop()
            now = dataclasses.replace(self._policy, model=kwargs["model"])
            answers = Respondent(now, Decoding(64, 256), 0).sample(
                self._problems, SAMPLES, occasion="held out"
            )
            self.points.append(
                self._clock.point(state.global_step, {now.name: answers}, self._problems)
            )
            self._clock.run()


def _train_trl(rate: float, agent: str, scratch: Path, steps: int) -> list[Point]:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    recipe = _recipe(rate)
    stream, exact = _stream(recipe), Exact()
    asked = [prompt for step in range(steps) for prompt in stream.batch(step)]
    policy = load_policy(agent, recipe.agents[agent])
    watch = _Watch(policy, _problems(recipe))

    def reward(
        prompts: Sequence[str], completions: Sequence[str], gold: Sequence[str], **_: Any
    ) -> list[float | None]:
        return [
            exact(Prompt("", "", asked_, right), text).reward
            for asked_, text, right in zip(prompts, completions, gold, strict=True)
        ]

    rows = recipe.prompts_per_step * recipe.group_size
    folder = resolve(recipe.agents[agent].model)
    GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder),
        reward_funcs=reward,
        args=GRPOConfig(
            output_dir=str(scratch),
            max_steps=steps,
            seed=recipe.seed,
            **settings(
                rows,
                64,
                recipe.group_size,
                recipe.sampling.max_new_tokens,
                learning_rate=rate,
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

"""One agent's learning: from lessons to optimizer updates."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_
from transformers import PreTrainedModel

from hacrl.agents.learning.batching import mini_batches
from hacrl.agents.learning.lessons import Lesson
from hacrl.agents.learning.loss import Loss
from hacrl.agents.learning.optimizer_state import load_optimizer, save_optimizer
from hacrl.agents.learning.outcomes import RowOutcome
from hacrl.agents.policy.policy import Policy
from hacrl.agents.policy.sharding import whole
from hacrl.algorithm.base import Algorithm
from hacrl.config.learning import Optimizer, Update

__all__ = ["Learner", "UpdateOutcome"]

_OPTIMIZER = "optimizer.safetensors"
_STATE = "learner.json"


@dataclass(frozen=True, slots=True)
class UpdateOutcome:
    """What one optimizer update did. `skipped` if its gradient was not finite."""

    loss: float
    gradient_norm: float
    learning_rate: float
    skipped: bool


class Learner:
    """Holds the optimizer of a policy and turns lessons into updates.

    Args:
        policy: the model to be trained, in place: all its weights, or its adapter.
        reference: frozen, for the KL term; needed if `update.kl` is above 0. It may be the same
            model without the adapter.
        temperature: at which the responses were sampled.
        algorithm: has the objective.
        mini_batches: M, own mini-batches a step.
        total_updates: of the whole run, for the schedule.

    Attributes:
        skipped_in_a_row: updates skipped since the last that was not.
    """

    def __init__(
        self,
        policy: Policy,
        reference: Policy | None,
        *,
        temperature: float,
        algorithm: Algorithm,
        mini_batches: int,
        update: Update,
        optimizer: Optimizer,
        total_updates: int,
    ) -> None:
        self._policy = policy
        self._loss = Loss(
            policy, reference, temperature=temperature, algorithm=algorithm, update=update
        )
        self._mini_batches = mini_batches
        self._order = update.order
        self._checkpointing = update.gradient_checkpointing
        self._max_grad_norm = optimizer.max_grad_norm
        self.skipped_in_a_row = 0
        policy.activate()
        self._parameters = {
            name: p for name, p in policy.model.named_parameters() if p.requires_grad
        }
        self._optimizer = torch.optim.AdamW(
            self._parameters.values(),
            lr=optimizer.learning_rate,
            betas=optimizer.betas,
            eps=optimizer.epsilon,
            weight_decay=optimizer.weight_decay,
            fused=True,
        )
        # Here, because it brings PEFT and bitsandbytes along, which only learning should wait for.
        from transformers import get_scheduler

        self._scheduler = get_scheduler(
            # transformers' `constant` leaves the warm-up out.
            "constant_with_warmup" if optimizer.schedule == "constant" else optimizer.schedule,
            self._optimizer,
            num_warmup_steps=optimizer.warmup_updates,
            num_training_steps=total_updates,
        )
        if self._checkpointing:
            policy.model.gradient_checkpointing_enable({"use_reentrant": False})

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """Of the policy's weights, or of its adapter's."""
        return self._optimizer

    @property
    def models(self) -> list[PreTrainedModel]:
        """All that learning computes with: the policy's, and the reference's if it is another."""
        return self._loss.models

    @property
    def reduced_micro_batch_tokens(self) -> int | None:
        """Padded tokens that are computed at once since memory ran out, None if it has not."""
        return self._loss.reduced_micro_batch_tokens

    def learn(self, lessons: Sequence[Lesson]) -> tuple[dict[int, RowOutcome], list[UpdateOutcome]]:
        """One pass over the lessons of a step.

        Returns:
            What each computed row did, by its index in `lessons`, and what each update did. Rows
            that were left out, or whose gradient is zero because their advantage is, are not
            computed; the latter count in the mean all the same.
        """
        by_agent: dict[str, list[int]] = {lesson.rollout.agent: [] for lesson in lessons}
        for i, lesson in enumerate(lessons):
            if lesson.left_out is None:
                by_agent[lesson.rollout.agent].append(i)
        own = by_agent.pop(self._policy.name)
        rows: dict[int, RowOutcome] = {}
        updates: list[UpdateOutcome] = []
        if self._checkpointing:  # acts in training mode alone; dropout is 0 anyway
            self._policy.model.train()
        for batch in mini_batches(own, by_agent, self._mini_batches, self._order):
            if batch:
                loss, outcomes = self._loss.backward(lessons, batch, update=len(updates))
                updates.append(self._step(loss))
                rows |= outcomes
        self._policy.model.eval()
        return rows, updates

    def recompute(self, lessons: Sequence[Lesson]) -> list[Lesson]:
        """Lessons whose own rows carry log-probabilities as `learn` will compute them.

        A sampler in other arithmetic than the learner's would make ratios differ from 1 before any
        update, by more than the own clip allows.
        """
        own = [i for i, lesson in enumerate(lessons) if lesson.own and self._loss.active(lesson)]
        logprobs = self._loss.logprobs(self._policy, lessons, own)
        return [
            dataclasses.replace(lesson, recomputed=tuple(logprobs[i].tolist()))
            if i in logprobs
            else lesson
            for i, lesson in enumerate(lessons)
        ]

    def save(self, folder: Path) -> None:
        """Write what learning continues from, the weights apart."""
        share = self._policy.share
        save_optimizer(self._optimizer, self._parameters, folder / _OPTIMIZER, share)
        state = {
            "updates": self._scheduler.last_epoch,
            "micro_batch_tokens": self._loss.micro_batch_tokens,
            "skipped_in_a_row": self.skipped_in_a_row,
            "teaching": self._loss.screening.teaching,
        }
        text = json.dumps(state, indent=2) + "\n"
        share.write(lambda: (folder / _STATE).write_text(text, "utf-8"))

    def restore(self, folder: Path) -> None:
        """Continue from what `save` wrote. The schedule is that of the recipe, at its place.

        Raises:
            UserError: it cannot be read, or belongs to another model.
        """
        load_optimizer(self._optimizer, self._parameters, folder / _OPTIMIZER)
        state = json.loads((folder / _STATE).read_text("utf-8"))
        self._loss.reduce(state["micro_batch_tokens"])
        self.skipped_in_a_row = state["skipped_in_a_row"]
        self._loss.screening.teaching = tuple(state["teaching"])
        done, scheduler = state["updates"], self._scheduler
        rates = [
            base * share(done)
            for base, share in zip(scheduler.base_lrs, scheduler.lr_lambdas, strict=True)
        ]
        for group, rate in zip(self._optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        scheduler.last_epoch, scheduler._last_lr = done, rates

    def gradient(self, lessons: Sequence[Lesson], batch: Sequence[int]) -> list[Tensor]:
        """The gradient of the mean objective of some rows, as at the first update of a step.

        One tensor per trained parameter. Without the KL term; changes nothing that training uses.
        """
        kept = {name: parameter.grad for name, parameter in self._parameters.items()}
        self._policy.model.train(self._checkpointing)
        taught = [i for i in batch if lessons[i].advantage != 0]
        self._loss.backward_rows(lessons, taught, len(batch), update=0, reference={})
        self._policy.model.eval()
        total = []
        for name, parameter in self._parameters.items():
            grad, parameter.grad = parameter.grad, kept[name]
            total.append(torch.zeros_like(parameter) if grad is None else -grad)
        return total

    def _step(self, loss: float) -> UpdateOutcome:
        parameters = list(self._parameters.values())
        for parameter in parameters:  # a mini-batch without signal has the gradient zero
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        norm = float(whole(clip_grad_norm_(parameters, self._max_grad_norm)))
        skipped = not (math.isfinite(norm) and math.isfinite(loss))
        self.skipped_in_a_row = self.skipped_in_a_row + 1 if skipped else 0
        rate = float(self._scheduler.get_last_lr()[0])
        if not skipped:
            self._optimizer.step()
            self._scheduler.step()
        self._optimizer.zero_grad()
        return UpdateOutcome(loss, norm, rate, skipped)

"""One agent's learning: from lessons to optimizer updates."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_
from transformers import PreTrainedModel, get_scheduler

from hacrl.agents.batching import mini_batches
from hacrl.agents.lessons import Lesson
from hacrl.agents.logprobs import Sequences, pad, response_logprobs
from hacrl.agents.memory import within_memory
from hacrl.agents.optimizer_state import load_optimizer, save_optimizer
from hacrl.agents.policy import Policy
from hacrl.config.schema import Clip, Optimizer, Ratio, Update
from hacrl.objective import Rows, Terms, kl_term, objective, stepwise_bounds

__all__ = ["Learner", "RowOutcome", "UpdateOutcome"]

T = TypeVar("T")

_OPTIMIZER = "optimizer.safetensors"
_STATE = "learner.json"


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """What one computed row did.

    Args:
        update: number of the optimizer update within the step.
        log_ratio: log of the sequence ratio in nats per token, before the limit.
        below: 1 if the ratio was below the clip interval (at token level: share of tokens).
        above: likewise above.
        limited: whether a ratio was beyond the limit before exp.
        teaches: whether the row had a gradient.
        finite: whether its ratio and its value are.
    """

    update: int
    log_ratio: float
    below: float
    above: float
    limited: bool
    teaches: bool
    finite: bool


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
        mini_batches: int,
        ratio: Ratio,
        clip: Clip,
        update: Update,
        optimizer: Optimizer,
        total_updates: int,
    ) -> None:
        self._policy = policy
        self._reference = reference
        self._temperature = temperature
        self._mini_batches = mini_batches
        self._ratio = ratio
        self._clip = clip
        self._update = update
        self._max_grad_norm = optimizer.max_grad_norm
        self._micro_batch_tokens = update.micro_batch_tokens
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
        self._scheduler = get_scheduler(
            optimizer.schedule,
            self._optimizer,
            num_warmup_steps=optimizer.warmup_updates,
            num_training_steps=total_updates,
        )
        if update.gradient_checkpointing:
            policy.model.gradient_checkpointing_enable({"use_reentrant": False})

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """Of the policy's weights, or of its adapter's."""
        return self._optimizer

    @property
    def models(self) -> list[PreTrainedModel]:
        """All that learning computes with: the policy's, and the reference's if it is another."""
        policies = (self._policy, *([self._reference] if self._reference else []))
        return list({id(one.model): one.model for one in policies}.values())

    @property
    def reduced_micro_batch_tokens(self) -> int | None:
        """Padded tokens that are computed at once since memory ran out, None if it has not."""
        wanted = self._update.micro_batch_tokens
        return self._micro_batch_tokens if self._micro_batch_tokens < wanted else None

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
        if self._update.gradient_checkpointing:  # acts in training mode alone; dropout is 0 anyway
            self._policy.model.train()
        for batch in mini_batches(own, by_agent, self._mini_batches, self._update.order):
            if batch:
                loss, outcomes = self._accumulate(lessons, batch, update=len(updates))
                updates.append(self._step(loss))
                rows |= outcomes
        self._policy.model.eval()
        return rows, updates

    def recompute(self, lessons: Sequence[Lesson]) -> list[Lesson]:
        """Lessons whose own rows carry log-probabilities as `learn` will compute them.

        A sampler in other arithmetic than the learner's would make ratios differ from 1 before any
        update, by more than the own clip allows.
        """
        lengths = {i: le.length for i, le in enumerate(lessons) if le.own and self._active(le)}

        def work(parts: Sequence[Sequence[int]]) -> list[Lesson]:
            new = list(lessons)
            for part in parts:
                with torch.no_grad(), self._autocast():
                    logprob_RT = response_logprobs(
                        self._policy, self._pad([lessons[i] for i in part]), self._temperature
                    )
                for i, row in zip(part, logprob_RT.tolist(), strict=True):
                    values = tuple(row[: lessons[i].rollout.length])
                    new[i] = dataclasses.replace(lessons[i], recomputed=values)
            return new

        return self._within_memory(work, lengths)

    def save(self, folder: Path) -> None:
        """Write what learning continues from, the weights apart."""
        save_optimizer(self._optimizer, self._parameters, folder / _OPTIMIZER)
        state = {
            "updates": self._scheduler.last_epoch,
            "micro_batch_tokens": self._micro_batch_tokens,
            "skipped_in_a_row": self.skipped_in_a_row,
        }
        (folder / _STATE).write_text(json.dumps(state, indent=2) + "\n", "utf-8")

    def restore(self, folder: Path) -> None:
        """Continue from what `save` wrote. The schedule is that of the recipe, at its place.

        Raises:
            UserError: it cannot be read, or belongs to another model.
        """
        load_optimizer(self._optimizer, self._parameters, folder / _OPTIMIZER)
        state = json.loads((folder / _STATE).read_text("utf-8"))
        self._micro_batch_tokens = min(state["micro_batch_tokens"], self._update.micro_batch_tokens)
        self.skipped_in_a_row = state["skipped_in_a_row"]
        done, scheduler = state["updates"], self._scheduler
        rates = [
            base * share(done)
            for base, share in zip(scheduler.base_lrs, scheduler.lr_lambdas, strict=True)
        ]
        for group, rate in zip(self._optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        scheduler.last_epoch, scheduler._last_lr = done, rates

    def _within_memory(
        self, work: Callable[[Sequence[Sequence[int]]], T], lengths: Mapping[int, int]
    ) -> T:
        result, self._micro_batch_tokens = within_memory(
            self._policy.name, work, lengths, self._micro_batch_tokens
        )
        return result

    def _active(self, lesson: Lesson) -> bool:
        """Whether a lesson can have a gradient at all."""
        wanted = lesson.advantage != 0 or (lesson.own and self._reference is not None)
        return lesson.left_out is None and wanted

    def _pad(self, lessons: Sequence[Lesson]) -> Sequences:
        return pad(
            [lesson.prompt_ids for lesson in lessons],
            [lesson.response_ids for lesson in lessons],
            self._policy.pad_id,
            self._policy.device,
        )

    def _accumulate(
        self, lessons: Sequence[Lesson], batch: Sequence[int], update: int
    ) -> tuple[float, dict[int, RowOutcome]]:
        """Add up the gradient of one mini-batch's loss, micro-batch by micro-batch.

        The loss is minus the mean over all rows of the mini-batch, so that neither the split into
        micro-batches nor the rows that need no computing change the gradient.
        """
        lengths = {i: lessons[i].length for i in batch if self._active(lessons[i])}

        def work(parts: Sequence[Sequence[int]]) -> tuple[float, dict[int, RowOutcome]]:
            self._optimizer.zero_grad()  # of an attempt that ran out of memory
            outcomes: dict[int, RowOutcome] = {}
            loss = 0.0
            for part in parts:
                with self._autocast():
                    value_R, terms = self._objective([lessons[i] for i in part], update)
                part_loss = -value_R.sum() / len(batch)
                torch.autograd.backward(part_loss)
                loss += part_loss.item()
                columns = (
                    *(terms.log_ratio_R, terms.below_R, terms.above_R),
                    *(terms.limited_R, terms.teaches_R),
                    value_R.isfinite() & terms.log_ratio_R.isfinite(),
                )
                for i, *row in zip(part, *(column.tolist() for column in columns), strict=True):
                    outcomes[i] = RowOutcome(update, *row)
            return loss, outcomes

        return self._within_memory(work, lengths)

    def _objective(self, lessons: Sequence[Lesson], update: int) -> tuple[Tensor, Terms]:
        """The objective of each row, less the KL term of own rows, and its parts."""
        device = self._policy.device

        def floats(values: Sequence[float]) -> Tensor:
            return torch.tensor(values, dtype=torch.float32, device=device)

        sequences = self._pad(lessons)
        reference_RT = self._reference_logprobs(sequences)
        logprob_RT = response_logprobs(self._policy, sequences, self._temperature)
        old_RT = torch.zeros_like(logprob_RT)
        if self._ratio.level == "token":
            for row, lesson in enumerate(lessons):
                old_RT[row, : lesson.rollout.length] = floats(lesson.old_logprobs)
        terms = objective(
            Rows(
                logprob_RT=logprob_RT,
                mask_RT=sequences.response_mask_RT,
                old_logprob_R=floats([math.fsum(lesson.old_logprobs) for lesson in lessons]),
                old_length_R=floats([lesson.rollout.length for lesson in lessons]),
                advantage_R=floats([lesson.advantage for lesson in lessons]),
                own_R=torch.tensor([lesson.own for lesson in lessons], device=device),
                old_logprob_RT=old_RT,
            ),
            level=self._ratio.level,
            length=self._ratio.length,
            alpha=self._ratio.alpha,
            own_clip=(self._clip.own_low, self._clip.own_high),
            cross_clip=self._clip.cross,
            cross_bounds=stepwise_bounds(self._clip.delta, self._clip.delta_step, update),
        )
        if reference_RT is None:
            return terms.value_R, terms
        own_R = floats([float(lesson.own) for lesson in lessons])
        kl_R = own_R * kl_term(logprob_RT, reference_RT, sequences.response_mask_RT)
        return terms.value_R - self._update.kl * kl_R, terms

    def _reference_logprobs(self, sequences: Sequences) -> Tensor | None:
        """Computed before those of the policy, since the two may be adapters of one model."""
        if self._reference is None:
            return None
        self._reference.activate()
        with torch.no_grad():
            logprob_RT = response_logprobs(self._reference, sequences, self._temperature)
        self._policy.activate()
        return logprob_RT

    def _step(self, loss: float) -> UpdateOutcome:
        parameters = list(self._parameters.values())
        for parameter in parameters:  # a mini-batch without signal has the gradient zero
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        norm = float(clip_grad_norm_(parameters, self._max_grad_norm))
        skipped = not (math.isfinite(norm) and math.isfinite(loss))
        self.skipped_in_a_row = self.skipped_in_a_row + 1 if skipped else 0
        rate = float(self._scheduler.get_last_lr()[0])
        if not skipped:
            self._optimizer.step()
            self._scheduler.step()
        self._optimizer.zero_grad()
        return UpdateOutcome(loss, norm, rate, skipped)

    def _autocast(self) -> AbstractContextManager[object]:
        if self._update.autocast == "off":
            return nullcontext()
        return torch.autocast(self._policy.device.type, torch.bfloat16)

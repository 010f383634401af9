"""One agent's learning: from lessons to optimizer updates."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_
from transformers import get_scheduler

from hacrl.agents.batching import mini_batches
from hacrl.agents.lessons import Lesson
from hacrl.agents.logprobs import pad, response_logprobs
from hacrl.agents.policy import Policy
from hacrl.agents.prompt_pass import can_share_prompts
from hacrl.agents.scoring import Scored, scored, scored_whole
from hacrl.config.schema import Clip, Optimizer, Ratio, Update
from hacrl.objective import Rows, Terms, kl_term, objective, stepwise_bounds

__all__ = ["Learner", "RowOutcome", "UpdateOutcome"]


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
    """

    update: int
    log_ratio: float
    below: float
    above: float
    limited: bool
    teaches: bool


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
        policy: the model to be trained, in place.
        reference: frozen model for the KL term; needed if `update.kl` is above 0.
        temperature: at which the responses were sampled.
        mini_batches: M, own mini-batches a step.
        total_updates: of the whole run, for the schedule.
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
        on_cpu = policy.device.type == "cpu"
        self._token_budget = update.micro_batch_tokens or (2_048 if on_cpu else 16_384)
        self._share_prompts = can_share_prompts(policy) and not update.gradient_checkpointing
        self._max_grad_norm = optimizer.max_grad_norm
        self._parameters = [p for p in policy.model.parameters() if p.requires_grad]
        self._optimizer = torch.optim.AdamW(
            self._parameters,
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
        rows = [i for i, lesson in enumerate(lessons) if lesson.own and self._active(lesson)]
        new = list(lessons)
        with torch.no_grad():
            for part, logprob_RT, _ in self._scored(self._policy, [lessons[i] for i in rows]):
                for i, row in zip((rows[j] for j in part), logprob_RT.tolist(), strict=True):
                    values = tuple(row[: lessons[i].rollout.length])
                    new[i] = dataclasses.replace(lessons[i], recomputed=values)
        return new

    def _active(self, lesson: Lesson) -> bool:
        """Whether a lesson can have a gradient at all."""
        wanted = lesson.advantage != 0 or (lesson.own and self._reference is not None)
        return lesson.left_out is None and wanted

    def _scored(self, policy: Policy, lessons: Sequence[Lesson]) -> Iterator[Scored]:
        """Micro-batches of lessons with their log-probabilities under a policy."""
        score = scored if self._share_prompts else scored_whole
        return score(
            policy,
            [lesson.prompt_ids for lesson in lessons],
            [lesson.response_ids for lesson in lessons],
            self._token_budget,
            self._temperature,
            self._autocast,
        )

    def _accumulate(
        self, lessons: Sequence[Lesson], batch: Sequence[int], update: int
    ) -> tuple[float, dict[int, RowOutcome]]:
        """Add up the gradient of one mini-batch's loss, micro-batch by micro-batch.

        The loss is minus the mean over all rows of the mini-batch, so that neither the split into
        micro-batches nor the rows that need no computing change the gradient.
        """
        active = [i for i in batch if self._active(lessons[i])]
        outcomes: dict[int, RowOutcome] = {}
        loss = 0.0
        for rows, logprob_RT, mask_RT in self._scored(self._policy, [lessons[i] for i in active]):
            part = [active[row] for row in rows]
            value_R, terms = self._objective(
                [lessons[i] for i in part], logprob_RT, mask_RT, update
            )
            part_loss = -value_R.sum() / len(batch)
            torch.autograd.backward(part_loss)
            loss += part_loss.item()
            columns = (
                *(terms.log_ratio_R, terms.below_R, terms.above_R),
                *(terms.limited_R, terms.teaches_R),
            )
            for i, *row in zip(part, *(column.tolist() for column in columns), strict=True):
                outcomes[i] = RowOutcome(update, *row)
        return loss, outcomes

    def _objective(
        self, lessons: Sequence[Lesson], logprob_RT: Tensor, mask_RT: Tensor, update: int
    ) -> tuple[Tensor, Terms]:
        """The objective of each row, less the KL term of own rows, and its parts."""
        device = self._policy.device

        def floats(values: Sequence[float]) -> Tensor:
            return torch.tensor(values, dtype=torch.float32, device=device)

        old_RT = torch.zeros_like(logprob_RT)
        if self._ratio.level == "token":
            for row, lesson in enumerate(lessons):
                old_RT[row, : lesson.rollout.length] = floats(lesson.old_logprobs)
        terms = objective(
            Rows(
                logprob_RT=logprob_RT,
                mask_RT=mask_RT,
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
        if self._reference is None:
            return terms.value_R, terms
        sequences = pad(
            [lesson.prompt_ids for lesson in lessons],
            [lesson.response_ids for lesson in lessons],
            self._policy.pad_id,
            device,
        )
        with torch.no_grad(), self._autocast():
            reference_RT = response_logprobs(self._reference, sequences, self._temperature)
        own_R = floats([float(lesson.own) for lesson in lessons])
        kl_R = own_R * kl_term(logprob_RT, reference_RT, mask_RT)
        return terms.value_R - self._update.kl * kl_R, terms

    def _step(self, loss: float) -> UpdateOutcome:
        for parameter in self._parameters:  # a mini-batch without signal has the gradient zero
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        norm = float(clip_grad_norm_(self._parameters, self._max_grad_norm))
        skipped = not (math.isfinite(norm) and math.isfinite(loss))
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

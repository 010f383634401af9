"""The loss of a mini-batch of lessons, and its way back to the weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor
from transformers import PreTrainedModel

from hacrl.agents.learning.lessons import Lesson
from hacrl.agents.learning.memory import within_memory
from hacrl.agents.learning.outcomes import RowOutcome, row_outcomes
from hacrl.agents.learning.scoring import Scored, scored, scored_whole
from hacrl.agents.learning.screening import Screening
from hacrl.agents.policy.policy import Policy
from hacrl.agents.policy.prompt_pass import can_share_prompts
from hacrl.agents.policy.sharding import resharded
from hacrl.algorithm.base import Algorithm
from hacrl.algorithm.objective import Rows, Terms, kl_term
from hacrl.config.learning import Update

__all__ = ["Loss", "tokens_at_once"]

T = TypeVar("T")


class Loss:
    """Computes losses of a policy's lessons in micro-batches that memory has room for.

    Args:
        policy: whose weights, or adapter, get the gradients.
        reference: frozen, for the KL term. It may be the same model without the adapter.
        temperature: at which the responses were sampled.
        algorithm: has the objective.

    Attributes:
        micro_batch_tokens: padded tokens that are computed at once.
        screening: decides which rows are looked at without gradients first.
    """

    def __init__(
        self,
        policy: Policy,
        reference: Policy | None,
        *,
        temperature: float,
        algorithm: Algorithm,
        update: Update,
    ) -> None:
        self._policy = policy
        self._reference = reference
        self._temperature = temperature
        self._algorithm = algorithm
        self._update = update
        self._wanted_tokens = tokens_at_once(update, policy.device.type)
        self.micro_batch_tokens = self._wanted_tokens
        # Ranks must make the same passes, so each response of several ranks has a whole one.
        alone = policy.share.size == 1 and not update.gradient_checkpointing
        self._share_prompts = alone and can_share_prompts(policy)
        self.screening = Screening(own_always_teach=reference is not None)

    @property
    def models(self) -> list[PreTrainedModel]:
        """The policy's, and the reference's if it is another."""
        policies = (self._policy, *([self._reference] if self._reference else []))
        return list({id(policy.model): policy.model for policy in policies}.values())

    @property
    def reduced_micro_batch_tokens(self) -> int | None:
        """Padded tokens that are computed at once since memory ran out, None if it has not."""
        reduced = self.micro_batch_tokens < self._wanted_tokens
        return self.micro_batch_tokens if reduced else None

    def reduce(self, micro_batch_tokens: int) -> None:
        """Compute so many padded tokens at once, unless the recipe asks for fewer."""
        self.micro_batch_tokens = min(micro_batch_tokens, self._wanted_tokens)

    @torch.no_grad()
    def logprobs(
        self, policy: Policy, lessons: Sequence[Lesson], rows: Sequence[int]
    ) -> dict[int, Tensor]:
        """log π(y_t) of the tokens of each row, without gradients."""

        def work(token_budget: int) -> dict[int, Tensor]:
            return {
                i: row_T[: len(lessons[i].response_ids)]
                for part, logprob_RT, _ in self._scored(policy, lessons, rows, token_budget)
                for i, row_T in zip(part, logprob_RT, strict=True)
            }

        policy.activate()
        with resharded(policy.model):
            logprobs = self._within_memory(work, lessons, rows)
        self._policy.activate()
        if policy.share.size == 1:
            return logprobs
        parts = policy.share.gather({i: row_T.tolist() for i, row_T in logprobs.items()})
        return {
            i: torch.tensor(row, device=policy.device)
            for chunk in parts
            for i, row in chunk.items()
        }

    def backward(
        self, lessons: Sequence[Lesson], batch: Sequence[int], update: int
    ) -> tuple[float, dict[int, RowOutcome]]:
        """Put the gradient of one mini-batch's loss into the weights, in place of what is there.

        Args:
            batch: rows of the mini-batch.
            update: m, number of the update within the step.

        Returns:
            The loss, and what each row did that was computed.

        Raises:
            UserError: memory is too small for a single row.
        """
        active = [i for i in batch if self.active(lessons[i])]
        reference: dict[int, Tensor] = {}
        if self._reference is not None:
            own = [i for i in active if lessons[i].own]
            reference = self.logprobs(self._reference, lessons, own)
        clipped, clipped_value = self._clipped(lessons, active, update)
        rest = [i for i in active if i not in clipped]
        loss, rows = self.backward_rows(lessons, rest, len(batch), update, reference)
        rows |= clipped
        self.screening.observe(((lessons[i].own, row.teaches) for i, row in rows.items()), update)
        return loss - clipped_value / len(batch), rows

    def backward_rows(
        self,
        lessons: Sequence[Lesson],
        rows: Sequence[int],
        count: int,
        update: int,
        reference: Mapping[int, Tensor],
    ) -> tuple[float, dict[int, RowOutcome]]:
        """See `backward`: micro-batch by micro-batch, with the choices made.

        The loss is minus the mean over all rows of the mini-batch, so that neither the split into
        micro-batches nor the rows that need no computing change the gradient.

        Args:
            rows: that are computed.
            count: of all rows of the mini-batch.
            reference: log-probabilities of own rows for the KL term, empty without it.
        """

        def work(token_budget: int) -> tuple[float, dict[int, RowOutcome]]:
            self._policy.model.zero_grad()  # of an attempt that ran out of memory
            outcomes: dict[int, RowOutcome] = {}
            loss = 0.0
            for part, logprob_RT, mask_RT in self._scored(
                self._policy, lessons, rows, token_budget
            ):
                chosen = [lessons[i] for i in part]
                terms = self._objective(chosen, logprob_RT, mask_RT, update)
                value_R = terms.value_R
                if reference:
                    value_R = value_R - self._update.kl * _kl(
                        [reference.get(i) for i in part], logprob_RT, mask_RT
                    )
                part_loss = -value_R.sum() / count
                torch.autograd.backward(part_loss)
                loss += part_loss.item()
                outcomes |= row_outcomes(part, terms, value_R, update)
            return loss, outcomes

        loss, outcomes = self._within_memory(work, lessons, rows)
        parts = self._policy.share.gather((loss, outcomes))
        every = {i: row for _, own_rows in parts for i, row in own_rows.items()}
        return sum(loss for loss, _ in parts), every

    def _clipped(
        self, lessons: Sequence[Lesson], rows: Sequence[int], update: int
    ) -> tuple[dict[int, RowOutcome], float]:
        """What the clipped ones among some rows did, none of which has a gradient, and their sum.

        Only rows that are worth a look are looked at; see `Screening`.
        """
        looked_at = self.screening.candidates(lessons, rows, update)
        if not looked_at or self._policy.share.size > 1:  # ranks would have to agree
            return {}, 0.0

        def work(token_budget: int) -> tuple[dict[int, RowOutcome], float]:
            clipped: dict[int, RowOutcome] = {}
            total = 0.0
            for part, logprob_RT, mask_RT in self._scored(
                self._policy, lessons, looked_at, token_budget
            ):
                terms = self._objective([lessons[i] for i in part], logprob_RT, mask_RT, update)
                outcomes = row_outcomes(part, terms, terms.value_R, update)
                for (i, row), value in zip(outcomes.items(), terms.value_R.tolist(), strict=True):
                    if row.finite and not row.teaches:
                        clipped[i] = row
                        total += value
            return clipped, total

        with self._policy.without_gradients():
            return self._within_memory(work, lessons, looked_at)

    def active(self, lesson: Lesson) -> bool:
        """Whether a lesson can have a gradient at all."""
        wanted = lesson.advantage != 0 or (lesson.own and self._reference is not None)
        return lesson.left_out is None and wanted

    def _within_memory(
        self, work: Callable[[int], T], lessons: Sequence[Lesson], rows: Sequence[int]
    ) -> T:
        if self._policy.share.size > 1:  # the others are in the midst of their passes
            return work(self.micro_batch_tokens)
        lengths = [lessons[i].length for i in rows]
        result, self.micro_batch_tokens = within_memory(
            self._policy.name, work, lengths, self.micro_batch_tokens
        )
        return result

    def _scored(
        self, policy: Policy, lessons: Sequence[Lesson], rows: Sequence[int], token_budget: int
    ) -> Iterator[Scored]:
        """Micro-batches of some lessons with their log-probabilities under a policy."""
        score = scored if self._share_prompts else partial(scored_whole, share=policy.share)
        for part, logprob_RT, mask_RT in score(
            policy,
            [lessons[i].prompt_ids for i in rows],
            [lessons[i].response_ids for i in rows],
            token_budget,
            self._temperature,
            self._autocast,
        ):
            yield [rows[j] for j in part], logprob_RT, mask_RT

    def _objective(
        self, lessons: Sequence[Lesson], logprob_RT: Tensor, mask_RT: Tensor, update: int
    ) -> Terms:
        """The objective of each row and its parts."""
        device = self._policy.device

        def floats(values: Sequence[float]) -> Tensor:
            return torch.tensor(values, dtype=torch.float32, device=device)

        old_RT = torch.zeros_like(logprob_RT)
        if self._algorithm.token_level:
            for row, lesson in enumerate(lessons):
                old_RT[row, : lesson.rollout.length] = floats(lesson.old_logprobs)
        return self._algorithm.objective(
            Rows(
                logprob_RT=logprob_RT,
                mask_RT=mask_RT,
                old_logprob_R=floats([lesson.old_logprob for lesson in lessons]),
                old_length_R=floats([lesson.rollout.length for lesson in lessons]),
                advantage_R=floats([lesson.advantage for lesson in lessons]),
                own_R=torch.tensor(
                    [lesson.own for lesson in lessons], dtype=torch.bool, device=device
                ),
                old_logprob_RT=old_RT,
            ),
            update,
        )

    def _autocast(self) -> AbstractContextManager[object]:
        if self._update.autocast == "off":
            return nullcontext()
        return torch.autocast(self._policy.device.type, torch.bfloat16)


def tokens_at_once(update: Update, device_type: str) -> int:
    """Padded tokens that are computed at once on such a device, as long as memory lasts."""
    return update.micro_batch_tokens or (2_048 if device_type == "cpu" else 16_384)


def _kl(reference: Sequence[Tensor | None], logprob_RT: Tensor, mask_RT: Tensor) -> Tensor:
    """KL to the reference of the rows (R,) that have one, which are the own ones; 0 elsewhere."""
    reference_RT = logprob_RT.detach().clone()
    for row, logprob_T in enumerate(reference):
        if logprob_T is not None:
            reference_RT[row, : len(logprob_T)] = logprob_T
    has_R = torch.tensor([logprobs is not None for logprobs in reference], device=logprob_RT.device)
    return kl_term(logprob_RT, reference_RT, mask_RT) * has_R

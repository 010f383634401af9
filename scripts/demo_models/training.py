"""Training from scratch: flawless solutions first, then solutions with a share of wrong steps.

The first phase teaches arithmetic; the second makes sampling about as often wrong as right.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from scripts.demo_models.problems import Problem, draw_problem
from scripts.demo_models.solutions import FLAWLESS, ErrorRates, write_solution

__all__ = ["Training", "draw_batches", "train"]

BATCH_SIZE = 64
RISE_STEPS = 100
PEAK_RATE = 4e-3
FLAWED_RATE = 4e-4
FINAL_RATE = 2e-5
REPORT_EVERY = 250
IGNORED = -100
"""Label of a position without loss."""


@dataclass(frozen=True)
class Training:
    """How a model is trained.

    Args:
        rates: of wrong steps in the second phase.
        flawless_steps: optimizer steps of the first phase.
        flawed_steps: optimizer steps of the second phase.
    """

    rates: ErrorRates
    flawless_steps: int
    flawed_steps: int

    @property
    def steps(self) -> int:
        """Optimizer steps of both phases."""
        return self.flawless_steps + self.flawed_steps

    def learning_rate(self, step: int) -> float:
        """A linear rise to the peak, then one cosine down for each phase.

        The second phase starts from a small rate, as gradients from wrong steps are noisy: at a
        large one they would wipe out some of the arithmetic instead of making it less certain.
        """
        if step < RISE_STEPS:
            return PEAK_RATE * (step + 1) / RISE_STEPS
        if step < self.flawless_steps:
            progress = (step - RISE_STEPS) / (self.flawless_steps - RISE_STEPS)
            return _cosine(PEAK_RATE, FLAWED_RATE, progress)
        progress = (step - self.flawless_steps) / self.flawed_steps
        return _cosine(FLAWED_RATE, FINAL_RATE, progress)


def train(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    training: Training,
    heldout: Set[Problem],
    rng: random.Random,
    draw: Callable[[random.Random], Problem] = draw_problem,
) -> None:
    """Train the model in place by next-token prediction.

    Args:
        heldout: problems that it never sees.
        draw: what it sees otherwise.
    """
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=PEAK_RATE, betas=(0.9, 0.98), weight_decay=0.01
    )
    model.train()
    losses: list[float] = []
    for step, batch in enumerate(draw_batches(training, heldout, rng, draw), 1):
        for group in optimizer.param_groups:
            group["lr"] = training.learning_rate(step - 1)
        input_ids, labels = _encode(batch, tokenizer)
        # No attention mask: with padding on the right, causal attention never sees the padding.
        logits = model(input_ids=input_ids, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORED
        )
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if step % REPORT_EVERY == 0:
            recent = sum(losses[-REPORT_EVERY:]) / REPORT_EVERY
            print(f"  step {step:5d}/{training.steps}  loss {recent:.4f}", flush=True)
    model.eval()


def draw_batches(
    training: Training,
    heldout: Set[Problem],
    rng: random.Random,
    draw: Callable[[random.Random], Problem] = draw_problem,
) -> Iterator[list[tuple[str, str]]]:
    """A batch of (prompt, response) for each step, without any held-out problem."""
    for step in range(training.steps):
        rates = FLAWLESS if step < training.flawless_steps else training.rates
        batch: list[tuple[str, str]] = []
        while len(batch) < BATCH_SIZE:
            problem = draw(rng)
            if problem not in heldout:
                batch.append((problem.question, write_solution(problem, rates, rng)))
        yield batch


def _encode(
    batch: Sequence[tuple[str, str]], tokenizer: PreTrainedTokenizerFast
) -> tuple[Tensor, Tensor]:
    """Input ids and labels, padded on the right.

    Prompt and response are encoded apart, as in reinforcement learning, where the prompt is given
    and the response is made of the model's own tokens. Only response and end token bear loss.
    """
    prompts = tokenizer([prompt for prompt, _ in batch]).input_ids
    responses = tokenizer([response for _, response in batch], add_special_tokens=False).input_ids
    rows = [p + r + [tokenizer.eos_token_id] for p, r in zip(prompts, responses, strict=True)]
    width = max(len(row) for row in rows)
    input_ids = torch.full((len(rows), width), int(tokenizer.pad_token_id))
    labels = torch.full((len(rows), width), IGNORED)
    for index, (prompt, row) in enumerate(zip(prompts, rows, strict=True)):
        input_ids[index, : len(row)] = torch.tensor(row)
        labels[index, len(prompt) : len(row)] = torch.tensor(row[len(prompt) :])
    return input_ids, labels


def _cosine(first: float, last: float, progress: float) -> float:
    """Half a cosine from `first` to `last`, as `progress` goes from 0 to 1."""
    return last + (first - last) * 0.5 * (1.0 + math.cos(math.pi * progress))

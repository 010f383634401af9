"""How good and how fluent a model is on held-out problems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerFast

from scripts.demo_models.models import sampling_config
from scripts.demo_models.problems import Problem
from scripts.demo_models.solutions import final_answer, is_well_formed

__all__ = ["print_measures"]

SAMPLES = 8
"""Sampled responses to each problem."""

MAX_RESPONSE_TOKENS = 48


@dataclass(frozen=True)
class _Responses:
    """The responses to one problem, and their lengths in tokens, end token included."""

    texts: list[str]
    lengths: list[int]

    def accuracy(self, problem: Problem) -> float:
        """Share of right answers."""
        return _mean([final_answer(text) == problem.answer for text in self.texts])


def print_measures(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, problems: Sequence[Problem]
) -> None:
    """Print accuracies by kind of problem, the share of well-formed responses, and lengths."""
    sampling = sampling_config(tokenizer)
    sampling.num_return_sequences = SAMPLES
    greedy = GenerationConfig(
        do_sample=False, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    best = _respond(model, tokenizer, problems, greedy)
    sampled = _respond(model, tokenizer, problems, sampling)
    _print_accuracies(problems, best, sampled)
    pairs = list(zip(problems, sampled, strict=True))
    well_formed = [is_well_formed(p, text) for p, group in pairs for text in group.texts]
    lengths = sorted(length for group in sampled for length in group.lengths)
    print(f"  well formed: {_mean(well_formed):.4f} of the sampled responses")
    print(
        f"  tokens of a sampled response, with the end token: mean {_mean(lengths):.1f}, "
        f"median {lengths[len(lengths) // 2]}, longest {lengths[-1]}",
        flush=True,
    )


@torch.no_grad()
def _respond(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    problems: Sequence[Problem],
    config: GenerationConfig,
) -> list[_Responses]:
    inputs = tokenizer([p.question for p in problems], padding=True, return_tensors="pt")
    config.max_new_tokens = MAX_RESPONSE_TOKENS
    output = model.generate(**inputs, generation_config=config)  # type: ignore[operator]
    width = inputs.input_ids.shape[1]
    rows = [_until_end(row, tokenizer.eos_token_id) for row in output[:, width:].tolist()]
    texts = [str(tokenizer.decode(row, skip_special_tokens=True)) for row in rows]
    lengths = [len(row) for row in rows]
    size = len(rows) // len(problems)
    return [
        _Responses(texts[first : first + size], lengths[first : first + size])
        for first in range(0, len(rows), size)
    ]


def _print_accuracies(
    problems: Sequence[Problem], greedy: Sequence[_Responses], sampled: Sequence[_Responses]
) -> None:
    """One line a kind; `mixed` is the share of problems that are solved by some samples only."""
    print(f"  {'kind':12s} {'problems':>8s} {'sampled':>8s} {'greedy':>8s} {'pass@8':>8s} mixed")
    for kind in ("all", "addition", "subtraction", "mixed"):
        chosen = [index for index, p in enumerate(problems) if kind in ("all", p.kind)]
        best = [greedy[index].accuracy(problems[index]) for index in chosen]
        groups = [sampled[index].accuracy(problems[index]) for index in chosen]
        print(
            f"  {kind:12s} {len(chosen):8d} {_mean(groups):8.3f} {_mean(best):8.3f} "
            f"{_mean([group > 0 for group in groups]):8.3f} "
            f"{_mean([0 < group < 1 for group in groups]):.3f}"
        )


def _until_end(token_ids: list[int], end: int) -> list[int]:
    """Cut what follows the first end token, which is kept."""
    return token_ids[: token_ids.index(end) + 1] if end in token_ids else token_ids


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan

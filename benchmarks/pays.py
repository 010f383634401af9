"""Whether two shortcuts pay: each switched off alone, against all of them on, in one process.

Seconds of a learner's pass and of a sampling call, by turns with and without, as the ratio of each
pair: its median and its quartiles. Models: one of SmolLM2-135M's size with random weights, and the
demo's two. Run by hand, `python -m benchmarks.pays`; writes `benchmarks/results/pays.json`.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from hacrl.agents.learning.learner import Learner
from hacrl.agents.learning.lessons import Lesson
from hacrl.agents.policy.loading import load_policy
from hacrl.agents.policy.policy import Policy
from hacrl.agents.sampling.base import Sample
from hacrl.agents.sampling.hugging_face import sample
from hacrl.algorithm.making import make_algorithm
from hacrl.config.agents import AgentSpec
from hacrl.config.algorithm import Advantage, Clip, Ratio
from hacrl.config.learning import Optimizer, Update
from hacrl.paths import resolve
from hacrl.records import Rollout

RESULT = Path(__file__).with_name("results") / "pays.json"
LOADING = "hacrl.agents.policy.loading"
WITHOUT = {
    "attention": (f"{LOADING}.group_queries", lambda model: None),
    "screening": (
        "hacrl.agents.learning.screening.Screening.candidates",
        lambda self, lessons, rows, update: [],
    ),
}
CLIPPED = {"attention": (0.75,), "screening": (0.5, 0.75, 1.0)}
"""Shares of the peer's rows that are far outside their clip interval."""
SETTINGS = {
    "smollm2": {"prompts": 2, "group": 2, "prompt": 48, "tokens": 32, "rounds": 7},
    "demo": {"prompts": 16, "group": 8, "prompt": 12, "tokens": 40, "rounds": 15},
}


def main() -> None:
    """Measure, print, and write the result file."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--models", nargs="+", default=[*SETTINGS])
    options.add_argument("--modules", nargs="+", default=[*WITHOUT])
    options.add_argument("--out", type=Path, default=RESULT)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    result: dict[str, Any] = {"machine": platform.processor() or platform.machine()}
    with tempfile.TemporaryDirectory() as folder:
        for model in chosen.models:
            where = _smollm2(Path(folder)) if model == "smollm2" else _demo()
            for module in chosen.modules:
                for clipped in CLIPPED[module]:
                    case = f"{module}, {model}, {clipped:.0%} clipped"
                    result[case] = measured(module, where, clipped, **SETTINGS[model])
                    sys.stdout.write(f"{case}: {result[case]}\n")
                    sys.stdout.flush()
    chosen.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def measured(
    module: str,
    model: str,
    clipped: float,
    *,
    prompts: int,
    group: int,
    prompt: int,
    tokens: int,
    rounds: int,
) -> dict[str, list[float]]:
    """Time without the module over time with it: quartiles, for learning and for sampling."""
    sides = []
    for off in (False, True):
        with _without(module, off):
            policy = load_policy("one", AgentSpec(model=model, device="cpu"))
        sides.append((off, policy, _learner(policy)))
    draw = partial(_draw, prompts=prompts, group=group, prompt=prompt, tokens=tokens)
    lessons = _lessons(*draw(sides[0][1]), clipped)
    quartiles = {}
    works: dict[str, Callable[[Policy, Learner], object]] = {
        "learning": lambda policy, learner: learner.learn(lessons),
        "sampling": lambda policy, learner: draw(policy),
    }
    for name, work in works.items():
        ratios = []
        for round_ in range(rounds + 1):
            seconds = {}
            for off, policy, learner in sides if round_ % 2 else reversed(sides):
                with _without(module, off):
                    begun = time.process_time()
                    work(policy, learner)
                    seconds[off] = time.process_time() - begun
            if round_:  # the first warms up
                ratios.append(seconds[True] / seconds[False])
        quartiles[name] = [round(q, 3) for q in statistics.quantiles(ratios, n=4)]
    return quartiles


@contextmanager
def _without(module: str, off: bool) -> Iterator[None]:
    if not off:
        yield
        return
    with patch(*WITHOUT[module]):
        yield


def _learner(policy: Policy) -> Learner:
    sections = {
        "advantage": Advantage().model_dump(),
        "ratio": Ratio().model_dump(),
        "clip": Clip(own_low=0.2, own_high=0.2).model_dump(),
    }
    return Learner(
        policy,
        None,
        temperature=1.0,
        algorithm=make_algorithm(sections),
        mini_batches=2,
        update=Update(mini_batches=2),
        optimizer=Optimizer(learning_rate=1e-12),  # the ratios stay what they are
        total_updates=10_000,
    )


def _draw(
    policy: Policy, *, prompts: int, group: int, prompt: int, tokens: int
) -> tuple[list[list[int]], list[list[Sample]]]:
    ids = [[4 + (7 * i + j) % 10 for j in range(prompt + 3 * i)] for i in range(prompts)]
    groups = sample(
        policy, ids, group, temperature=1.0, max_new_tokens=tokens, batch_size=256, seed=0
    )
    return ids, groups


def _lessons(
    prompts: Sequence[list[int]], groups: Sequence[list[Sample]], clipped: float
) -> list[Lesson]:
    """Own responses, and the same as a peer's, a share of which is clipped."""
    lessons = []
    for own in (True, False):
        responses = [
            (p, i, drawn) for p, group in enumerate(groups) for i, drawn in enumerate(group)
        ]
        for row, (p, i, drawn) in enumerate(responses):
            length = len(drawn.token_ids)
            is_clipped = (row + 1) * clipped // 1 > row * clipped // 1  # spread over all rows
            shift = 0.0 if own else length * (1.0 if is_clipped else 0.1)
            logprob = math.fsum(drawn.logprobs) + shift
            rollout = Rollout(p, "one" if own else "peer", i, 0, "", logprob, length, True)
            value = 1.0 if i % 2 else -1.0
            sampled = tuple(drawn.logprobs) if own else ()
            lessons.append(Lesson(rollout, own, value, prompts[p], drawn.token_ids, None, sampled))
    return lessons


def _demo() -> str:
    return "bundled:demo/assets/qwen3-char"


def _smollm2(folder: Path) -> str:
    """A model of its shape, with the tokenizer of the demo."""
    config = LlamaConfig(
        vocab_size=49_152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        tie_word_embeddings=True,
        max_position_embeddings=2048,
    )
    tokenizer = AutoTokenizer.from_pretrained(resolve("bundled:demo/assets/llama-bpe"))
    config.eos_token_id, config.pad_token_id = tokenizer.eos_token_id, tokenizer.pad_token_id
    config.bos_token_id = None
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


if __name__ == "__main__":
    main()

"""Make the two tiny models of the demo, their tokenizers and the problems.

    python -m scripts.demo_models

The demo needs two different language models that are able, but not yet reliable, at the same
verifiable task, each weak where the other is strong. Both are trained from scratch:

- `qwen3-char`: Qwen3, a token per character; 10% of additions and 50% of subtractions wrong.
- `llama-bpe`: Llama, a BPE in which a number is one token; the shares the other way round.

It takes a few minutes a model on one core. All randomness comes from a fixed seed and all is
computed on one thread: the same versions of the libraries on the same kind of machine write the
same bytes.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers.utils.logging import disable_progress_bar

from scripts.demo_models.measuring import print_measures
from scripts.demo_models.models import build_llama, build_qwen3, save_model
from scripts.demo_models.problems import Problem, demo_problems, write_problems
from scripts.demo_models.solutions import FLAWLESS, ErrorRates, write_solution
from scripts.demo_models.tokenization import (
    build_bpe_tokenizer,
    build_char_tokenizer,
    check_lossless,
)
from scripts.demo_models.training import Training, train

ASSETS = Path(__file__).resolve().parents[2] / "src" / "hacrl" / "demo" / "assets"
SEED = 1

TRAININGS = {
    "qwen3-char": Training(ErrorRates(0.1, 0.5), flawless_steps=1400, flawed_steps=500),
    "llama-bpe": Training(ErrorRates(0.5, 0.1), flawless_steps=3500, flawed_steps=600),
}


def main() -> None:
    """Write the problems and the models."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.demo_models",
        description="Make the two tiny models and the problems of the demo.",
    )
    parser.add_argument("--out", type=Path, default=ASSETS, help="folder to write to")
    parser.add_argument("--only", choices=TRAININGS, help="make only this model")
    args = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # costs more than such texts take
    disable_progress_bar()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    train_problems, heldout = demo_problems(SEED)
    args.out.mkdir(parents=True, exist_ok=True)
    write_problems(args.out / "train.jsonl", train_problems)
    write_problems(args.out / "heldout.jsonl", heldout)
    for name in [args.only] if args.only else TRAININGS:
        _make_model(name, train_problems, heldout, args.out / name)


def _make_model(
    name: str, train_problems: Sequence[Problem], heldout: Sequence[Problem], folder: Path
) -> None:
    rng = random.Random(f"{SEED}/{name}")  # its own: changing one model leaves the other as it was
    torch.manual_seed(rng.getrandbits(32))
    if name == "qwen3-char":
        tokenizer = build_char_tokenizer()
        model = build_qwen3(tokenizer)
    else:
        corpus = [p.question + write_solution(p, FLAWLESS, rng) for p in train_problems]
        tokenizer = build_bpe_tokenizer(corpus)
        model = build_llama(tokenizer)
    check_lossless(tokenizer, rng)
    print(f"{name}: {model.num_parameters():,} parameters, {len(tokenizer)} tokens", flush=True)
    started = time.perf_counter()
    train(model, tokenizer, TRAININGS[name], frozenset(heldout), rng)
    print(f"  trained in {time.perf_counter() - started:.0f} s", flush=True)
    print_measures(model, tokenizer, heldout)
    save_model(model, tokenizer, folder)


if __name__ == "__main__":
    main()

"""The starting models of the study, trained from scratch in minutes:
`python -m studies --only models`.

| name | what it is | wrong additions, subtractions |
|---|---|---|
| `qwen` | Qwen3, 64 wide, 3 layers, a token per character | 30%, 80% |
| `late` | the same architecture, other weights, further on | 20%, 50% |
| `small` | the same family and tokenizer, 32 wide, 2 layers | 50%, 70% |
| `early` | the architecture of `qwen`, other weights, a third of the training | 80%, 90% |
| `llama` | Llama, 64 wide, 2 layers, a BPE that merges what stands between digits | 80%, 30% |

The shares are those of the solutions that a model saw last (`scripts.demo_models.training`).
`qwen` takes part in every setting; its partners are like it and further on, of its family and
smaller, and unlike it with the opposite weakness. `early` stands apart: `late` is several times as
capable.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Sequence, Set
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar

from scripts.demo_models.models import build_llama, build_qwen3, save_model
from scripts.demo_models.problems import Problem
from scripts.demo_models.solutions import FLAWLESS, ErrorRates, write_solution
from scripts.demo_models.tokenization import DIGITS_ALONE, build_bpe_tokenizer, build_char_tokenizer
from scripts.demo_models.training import Training, train
from studies.problems import TRAIN, draw_warm_up, study_problems, write_sets

__all__ = ["MODELS", "make_models"]

SEED = 1


@dataclass(frozen=True)
class _Model:
    family: str
    width: int
    layers: int
    training: Training


MODELS = {
    "qwen": _Model("qwen3", 64, 3, Training(ErrorRates(0.3, 0.8), 1800, 500)),
    "late": _Model("qwen3", 64, 3, Training(ErrorRates(0.2, 0.5), 1800, 500)),
    "small": _Model("qwen3", 32, 2, Training(ErrorRates(0.5, 0.7), 1800, 500)),
    "early": _Model("qwen3", 64, 3, Training(ErrorRates(0.8, 0.9), 600, 160)),
    "llama": _Model("llama", 64, 2, Training(ErrorRates(0.8, 0.3), 1800, 500)),
}


def make_models(folder: Path, jobs: int) -> None:
    """Write `data/<set>.jsonl` and every model below `folder` that is not there yet.

    Args:
        jobs: processes, with one thread each.
    """
    sets = study_problems(SEED)
    write_sets(folder / "data", sets)
    heldout = frozenset(p for name, problems in sets.items() if name != TRAIN for p in problems)
    missing = [name for name in MODELS if not (folder / name).is_dir()]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as executor:
        for made in [
            executor.submit(_make, name, sets[TRAIN], heldout, folder / name)
            for name in sorted(missing, key=lambda name: -MODELS[name].training.steps)
        ]:
            made.result()


def _make(name: str, problems: Sequence[Problem], heldout: Set[Problem], folder: Path) -> None:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # costs more than such texts take
    disable_progress_bar()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    rng = random.Random(f"{SEED}/{name}")  # its own: models do not change each other
    torch.manual_seed(rng.getrandbits(32))
    started = time.perf_counter()
    model, tokenizer = _build(MODELS[name], problems, rng)
    train(model, tokenizer, MODELS[name].training, heldout, rng, draw_warm_up)
    part = folder.with_suffix(".part")
    save_model(model, tokenizer, part)
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
    print(
        f"{name}: {model.num_parameters():,} parameters in {time.perf_counter() - started:.0f} s",
        flush=True,
    )


def _build(
    spec: _Model, problems: Sequence[Problem], rng: random.Random
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    if spec.family == "qwen3":
        tokenizer = build_char_tokenizer()
        return build_qwen3(tokenizer, width=spec.width, layers=spec.layers), tokenizer
    tokenizer = build_bpe_tokenizer(
        [p.question + write_solution(p, FLAWLESS, rng) for p in problems], DIGITS_ALONE
    )
    return build_llama(tokenizer), tokenizer

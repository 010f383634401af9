"""What `hacrl check --gpus` says of memory against what a run on a CPU takes.

Models of random weights are loaded, sample and learn for two steps, each in processes of its own;
the second step is measured, phase by phase: the peak of resident memory above what the process had
before it loaded the model. The prediction comes from the same recipe and the model's configuration
alone. `error` is how far the prediction is off, as a share of what was taken.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import platform
import socket
import sys
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import distributed
from transformers import AutoConfig, AutoModelForCausalLM, get_scheduler

from hacrl.agents.agent import Agent
from hacrl.agents.policy.sharding import Share
from hacrl.agents.policy.source import load_config
from hacrl.config import Recipe, recipe_from_dict
from hacrl.planning.rehearsal import rehearse
from hacrl.records import Outcome, Pool, Prompt, Verdict, Verified

RESULT = Path(__file__).with_name("results") / "memory.json"
PROMPT_TOKENS = 64
_GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": str(1 << 20)}
"""Lets the C library give larger blocks back once they are free. Otherwise what it keeps in case it
is wanted again is a part of resident memory, more or less of it from run to run."""

SHAPES: Mapping[str, Mapping[str, Any]] = {
    "tiny": {
        "model_type": "qwen3",
        "vocab_size": 4096,
        "hidden_size": 512,
        "intermediate_size": 1536,
        "num_hidden_layers": 8,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 64,
    },
    "SmolLM2-135M": {
        "model_type": "llama",
        "vocab_size": 49152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
    },
    "Gemma-3-270M": {
        "model_type": "gemma3_text",
        "vocab_size": 262144,
        "hidden_size": 640,
        "intermediate_size": 2048,
        "num_hidden_layers": 18,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "sliding_window": 512,
    },
}
"""Configurations of models; their embeddings are tied."""


def main() -> None:
    """Measure, print, and write the result file."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--models", nargs="*", default=[*SHAPES], choices=[*SHAPES])
    options.add_argument("--ranks", nargs="*", type=int, default=[1, 2])
    options.add_argument("--new-tokens", type=int, default=64)
    options.add_argument("--out", type=Path, default=RESULT)
    chosen = options.parse_args()
    cases: dict[str, dict[str, dict[str, float]]] = {}
    for model in chosen.models:
        with tempfile.TemporaryDirectory() as folder:
            make_model(SHAPES[model], Path(folder))
            for ranks in chosen.ranks:
                recipe = make_recipe(Path(folder), ranks, chosen.new_tokens)
                cases[f"{model}, {ranks} rank{'s' * (ranks > 1)}"] = compared(recipe)
                chosen.out.write_text(_result(cases), encoding="utf-8")
    sys.stdout.write(_result(cases))


def _result(cases: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    result = {
        "machine": {"cpus": os.cpu_count(), "system": platform.system()},
        "versions": {name: version(name) for name in ("hacrl", "torch", "transformers")},
        "bytes": cases,
    }
    return json.dumps(result, indent=2) + "\n"


def compared(recipe: Recipe) -> dict[str, dict[str, float]]:
    """By phase: what is predicted, what is taken, and the error of the prediction."""
    spec = recipe.models["model"]
    need = rehearse("model", recipe, load_config("model", spec), PROMPT_TOKENS, "cpu")
    taken = measured(recipe)
    return {
        phase: {
            "predicted": need.peaks[phase],
            "taken": size,
            "error": round(need.peaks[phase] / size - 1, 3),
        }
        for phase, size in taken.items()
    }


def make_model(shape: Mapping[str, Any], folder: Path) -> None:
    """Write a model of random weights, with a tokenizer of single characters."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    vocabulary = {"<end>": 0, **{chr(97 + i): 1 + i for i in range(26)}}
    PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.BPE(vocab=vocabulary, merges=[])),
        eos_token="<end>",
        pad_token="<end>",
    ).save_pretrained(folder)
    ends = {"bos_token_id": None, "eos_token_id": 0, "pad_token_id": 0}
    settings: dict[str, Any] = {**shape, **ends, "tie_word_embeddings": True}
    config = AutoConfig.for_model(**settings)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)


def make_recipe(folder: Path, ranks: int, new_tokens: int, **changes: Any) -> Recipe:
    """A step of four prompts with four responses each, none of which will end by itself."""
    return recipe_from_dict(
        {
            "name": "memory",
            "steps": 2,
            "prompts_per_step": 4,
            "sharing": "nobody",
            "fleet": "ray",
            "agents": {"model": {"model": str(folder), "ranks": ranks, "device": "cpu"}},
            "tasks": {
                "t": {"source": {"type": "jsonl", "path": "x"}, "verifier": {"type": "exact"}}
            },
            "sampling": {"group_size": 4, "max_new_tokens": new_tokens},
            "update": {"old_logprobs": "recompute"},
            **changes,
        }
    )


def measured(recipe: Recipe) -> dict[str, int]:
    """Bytes that the first rank takes at most in each phase, above what it has without a model."""
    processes = multiprocessing.get_context("spawn")
    results: Queue[dict[str, int]] = processes.Queue()
    ranks = recipe.models["model"].ranks
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = [
        processes.Process(target=_run, args=(recipe, Share(rank, ranks), port, results))
        for rank in range(ranks)
    ]
    with patch.dict(os.environ, _GIVE_BACK):
        for process in started:
            process.start()
    taken = results.get(timeout=3600)
    for process in started:
        process.join()
    return taken


def _run(recipe: Recipe, share: Share, port: int, results: Queue[dict[str, int]]) -> None:
    torch.set_num_threads(1)
    if share.size > 1:
        distributed.init_process_group(
            "gloo", f"tcp://127.0.0.1:{port}", rank=share.rank, world_size=share.size
        )
    _warm_up()
    meter = _Meter()
    agent = Agent.from_recipe("model", recipe, share=share)
    meter.note("load")
    prompts = [Prompt(str(i), "t", chr(97 + i) * PROMPT_TOKENS, "1") for i in range(4)]
    advantage = {"model": [[1.0, -1.0] * (recipe.group_size // 2)] * len(prompts)}
    for step in range(recipe.steps):
        meter.restart()
        rollouts = agent.sample(prompts, recipe.group_size, occasion=str(step))
        meter.note("sample")
        meter.restart()
        rows = tuple(Verified(rollout, Verdict(1.0, Outcome.RIGHT)) for rollout in rollouts)
        agent.learn(Pool(step, ("model",), tuple(prompts), recipe.group_size, rows), advantage)
        meter.note("learn")
    with tempfile.TemporaryDirectory() as folder:
        meter.restart()
        agent.checkpoint(Path(folder))
        meter.note("checkpoint")
    if share.leads:
        results.put(meter.peaks)


class _Meter:
    """Reads the peak of this process's resident memory above what it was at the beginning."""

    def __init__(self) -> None:
        self.peaks: dict[str, int] = {}
        self._before = _status("VmRSS")
        self.restart()

    def restart(self) -> None:
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")

    def note(self, phase: str) -> None:
        self.peaks[phase] = _status("VmHWM") - self._before


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1]) * 1024


def _warm_up() -> None:
    """Let libraries take what they take once, whatever the model."""
    layer = torch.nn.Linear(64, 64)
    optimizer = torch.optim.AdamW(layer.parameters(), fused=True)
    get_scheduler("constant_with_warmup", optimizer, num_warmup_steps=0)
    layer(torch.ones(4, 64)).sum().backward()
    optimizer.step()


if __name__ == "__main__":
    main()

"""Runs in processes of their own, to be killed."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from hacrl.config import Recipe, recipe_from_dict

__all__ = ["make_recipe", "start"]

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["scripts.crash_test.server"])


def make_recipe(steps: int) -> Recipe:
    """Two bundled models of different families, one trained whole and one by an adapter."""
    task: dict[str, Any] = {
        "source": {"type": "jsonl", "path": "bundled:demo/assets/train.jsonl", "limit": 64},
        "verifier": {"type": "exact"},
    }
    return recipe_from_dict(
        {
            "name": "crash",
            "steps": steps,
            "prompts_per_step": 4,
            "threads": 1,
            "agents": {
                "ada": {"model": "bundled:demo/assets/qwen3-char"},
                "bob": {"model": "bundled:demo/assets/llama-bpe", "lora": {"rank": 4}},
            },
            "tasks": {"arithmetic": task},
            "sampling": {"group_size": 4, "max_new_tokens": 12},
            "clip": {"own_low": 0.1, "own_high": 0.1, "delta": 0.5},
            "optimizer": {"learning_rate": 1e-3, "schedule": "linear", "warmup_updates": 2},
            "update": {"kl": 0.01},
            "checkpoints": {"every": 1, "keep": 2, "best": "held_out"},
            "evaluation": {
                "tasks": {"held_out": {**task, "source": {**task["source"], "limit": 8}}},
                "every": 1,
                "at_start": True,
            },
        }
    )


def start(recipe: Recipe, root: Path) -> ForkServerProcess:
    """Begin or resume a run in a new process."""
    process = _CONTEXT.Process(target=_run, args=(recipe, root), daemon=True)
    process.start()
    return process


def _run(recipe: Recipe, root: Path) -> None:
    from hacrl.training.train import train

    train(recipe, root, resume=True)

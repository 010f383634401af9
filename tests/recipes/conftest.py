"""The smallest recipe that trains, and sections of every type that it can have."""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from rich.console import Console

import hacrl.training.preparing
from hacrl.cli.check import print_preparation
from hacrl.config import Recipe, recipe_from_dict
from hacrl.errors import UserError
from hacrl.training.train import train

Raw = dict[str, Any]
_AFFORDABLE = 64
"""Responses of all agents in a step."""


@pytest.fixture(scope="session")
def base(qwen_folder: Path, llama_folder: Path, problems_file: Path) -> Raw:
    return {
        "name": "drawn",
        "steps": 2,
        "prompts_per_step": 2,
        "threads": 1,
        "agents": {"kim": {"model": str(qwen_folder)}, "lee": {"model": str(llama_folder)}},
        "tasks": {
            "bits": {
                "source": {"type": "jsonl", "path": str(problems_file), "limit": 6},
                "verifier": {"type": "exact", "marker": None},
            }
        },
        "sampling": {"group_size": 4, "max_new_tokens": 2},
        "optimizer": {"learning_rate": 1e-3},
        "checkpoints": {"every": None},
    }


@pytest.fixture(scope="session")
def sections(
    base: Raw, problems_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """By name, or by name and type; see `with_value`."""
    folder = tmp_path_factory.mktemp("sources")
    rows = [json.loads(line) for line in problems_file.read_text().splitlines()][:6]
    (folder / "rows.json").write_text(json.dumps(rows))
    table = ["question,answer", *(f"{row['question']},{row['answer']}" for row in rows)]
    (folder / "rows.csv").write_text("\n".join(table))
    parquet.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    exact = {"type": "exact", "marker": None}
    earlier = [
        train(recipe_from_dict(base, ["steps=1", f"name=seed-{seed}", f"seed={seed}"]), folder).path
        for seed in (1, 2)
    ]
    return {
        "lora": {"rank": 2},
        "agents/recording": {"from": "recording", "path": str(earlier[0]), "agent": "kim"},
        "another recording": str(earlier[1]),
        "evaluation": {"tasks": {"held": base["tasks"]["bits"]}, "every": 1, "limit": 2},
        "loggers": [{"type": "tensorboard"}],
        "source/jsonl": base["tasks"]["bits"]["source"],
        **{
            f"source/{kind}": {"type": kind, "path": str(folder / f"rows.{kind}")}
            for kind in ("json", "csv", "parquet")
        },
        "source/hub": {"type": "hub", "id": "somebody/some-data"},
        "source/benchmark": {"type": "benchmark", "name": "gsm8k", "path": str(problems_file)},
        "source/reasoning_gym": {
            "type": "reasoning_gym",
            "generators": {"chain_sum": {}},
            "size": 4,
        },
        **{f"verifier/{kind}": {"type": kind} for kind in ("math", "choice", "code")},
        "verifier/exact": exact,
        "verifier/reasoning_gym": {"type": "reasoning_gym", "name": "chain_sum"},
        "verifier/command": {"type": "command", "argv": ["true"]},
        "verifier/python": {"type": "python", "function": "tests.recipes.rewards:score"},
        "verifier/sum": {"type": "sum", "parts": [{"verifier": exact}]},
        "sampler/hf": {"type": "hf"},
        "sampler/vllm": {"type": "vllm"},
        "loggers/tensorboard": {"type": "tensorboard"},
        "loggers/wandb": {"type": "wandb", "mode": "offline"},
        "loggers/trackio": {"type": "trackio"},
    }


@pytest.fixture(scope="module")
def readable() -> Iterator[None]:
    """Each tokenizer and configuration is read once for all checks."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("load_tokenizer", "load_config"):
            load = getattr(hacrl.training.preparing, name)
            patch.setattr(hacrl.training.preparing, name, remembered(load))
        yield


def remembered(load: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[str, Any] = {}

    def recall(name: str, spec: Any) -> Any:
        key = spec.model_dump_json(exclude={"sampler", "resources", "learning_rate", "ranks"})
        if key not in known:
            known[key] = load(name, spec)
        return known[key]

    return recall


def check_short(error: UserError) -> None:
    """A refusal is one or two lines, whatever it repeats."""
    assert 1 <= len(str(error).splitlines()) <= 2, error


def accepted(raw: Raw) -> Recipe | None:
    """The recipe if `hacrl check` accepts it; None if it refuses it, which it must do briefly."""
    try:
        recipe = recipe_from_dict(raw)
        with warnings.catch_warnings(action="ignore"):
            preparation = hacrl.training.preparing.prepare(recipe)
            print_preparation(recipe, preparation, Console(file=io.StringIO(), width=200))
    except UserError as error:
        check_short(error)
        return None
    return recipe


def trained(recipe: Recipe, root: Path) -> str:
    """Train two steps of an accepted recipe; `trained`, `too large`, or why it was refused."""
    small = recipe.model_copy(update={"steps": min(recipe.steps, 2)})
    rule = small.evaluation
    if small.prompts_per_step * small.group_size * len(small.agents) > _AFFORDABLE:
        return "too large"
    if rule and rule.samples * (rule.limit or 28) > _AFFORDABLE:
        return "too large"
    root.mkdir(exist_ok=True)
    try:
        # Some recipes name folders for their loggers.
        with warnings.catch_warnings(action="ignore"), contextlib.chdir(root):
            train(small, root)
    except UserError as error:
        check_short(error)
        return f"refused: {error}"
    return "trained"

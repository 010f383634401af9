"""The recipes of the paper's six pairs say what its tables say."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from hacrl.cli.check import print_preparation
from hacrl.config import load_recipe
from hacrl.config.bundled import bundled_recipes, find_recipe
from hacrl.training.preparing import prepare

# α, δ, δ_step of Table 5, δ read as the paper's text has it.
PAIRS = {
    "qwen3-4b-instruct": (3.0, 0.2, 0.01),
    "qwen3-1.7b-4b": (1.0, 0.2, 0.025),
    "qwen3-4b-8b": (3.0, 0.2, 0.025),
    "llama3.2-1b-3b": (1.0, 0.1, 0.01),
    "qwen3-1.7b-llama3.2-1b": (1.0, 0.2, 0.025),
    "qwen3-4b-llama3.2-3b": (1.0, 0.2, 0.025),
}


def test_every_pair_has_a_recipe() -> None:
    assert {n for n in bundled_recipes() if n.startswith("paper/")} == {f"paper/{n}" for n in PAIRS}


@pytest.mark.parametrize(("name", "settings"), PAIRS.items())
def test_a_recipe_has_the_papers_settings(name: str, settings: tuple[float, float, float]) -> None:
    recipe = load_recipe(find_recipe(name))
    assert (recipe.ratio.alpha, recipe.clip.delta, recipe.clip.delta_step) == settings
    assert (recipe.prompts_per_step, recipe.group_size, recipe.mini_batches) == (128, 8, 2)
    assert (recipe.clip.own_low, recipe.clip.own_high) == (3e-4, 4e-4)
    assert (recipe.prompts.max_tokens, recipe.sampling.max_new_tokens) == (1024, 4096)
    assert recipe.steps * recipe.prompts_per_step <= 7500 < (recipe.steps + 1) * 128
    assert {recipe.updates_per_step(agent) for agent in recipe.agents} == {4}


@pytest.mark.parametrize("name", PAIRS)
def test_a_recipe_is_checked_without_its_models(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    rows = [{"problem": f"1+{i}=?", "solution": f"\\boxed{{{1 + i}}}"} for i in range(3)]
    data = tmp_path / "train.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    fields = f"{{type: jsonl, path: '{data}', question: problem, answer: solution}}"
    output = StringIO()
    recipe = load_recipe(find_recipe(name), [f"tasks.math.source={fields}"])
    print_preparation(recipe, prepare(recipe), Console(file=output, width=200))
    assert "2,048 per step in total" in output.getvalue()
    assert output.getvalue().rstrip().endswith("ok, with 2 warnings")

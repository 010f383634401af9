"""Methods are files that are found by their name."""

from __future__ import annotations

import math
import subprocess
import sys
from importlib import import_module

import pytest
import torch

from hacrl.algorithm.advantages import group_metrics
from hacrl.algorithm.base import JointSet
from hacrl.algorithm.making import make_method, with_rule
from hacrl.algorithm.methods import method_label, method_names, method_settings
from hacrl.algorithm.objective import SequenceLevel, TokenLevel
from hacrl.config import recipe_from_dict
from tests.algorithms import algorithm

RAW = {
    "name": "x",
    "steps": 1,
    "prompts_per_step": 4,
    "agents": {"kim": {"model": "m"}, "lee": {"model": "n"}},
    "tasks": {"t": {"source": {"type": "jsonl", "path": "p"}, "verifier": {"type": "exact"}}},
}


def test_the_methods_of_the_paper_are_there_and_say_where_they_come_from() -> None:
    assert {"gspo", "gspo_x2", "grpo", "hacpo", "naive"} <= set(method_names())
    for name in method_names():
        assert import_module(f"hacrl.algorithm.methods.{name}").__doc__, name
        assert {"sharing", "ratio.level"} <= method_settings(name).keys()
    assert method_settings("none such") == {}


@pytest.mark.parametrize("name", method_names())
def test_a_method_makes_the_objective_of_its_level(name: str) -> None:
    recipe = recipe_from_dict(RAW | {"method": name})
    sections = {key: getattr(recipe, key).model_dump() for key in ("advantage", "ratio", "clip")}
    made = make_method(name, sections)
    level = TokenLevel if recipe.ratio.level == "token" else SequenceLevel
    assert isinstance(made.objective, level)
    assert made.token_level == (level is TokenLevel)


def test_knowing_the_methods_needs_no_torch() -> None:
    code = (
        "import sys; from hacrl.algorithm.methods import method_names, method_settings;"
        "[method_settings(name) for name in method_names()]; sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_mathematics_need_torch_alone() -> None:
    code = (
        "import sys\n"
        "for name in ('pydantic', 'transformers', 'pyarrow', 'yaml', 'rich', 'typer'):\n"
        "    sys.modules[name] = None\n"
        "import hacrl.algorithm.making, hacrl.algorithm.capability"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_method_is_called_by_its_name_or_that_of_the_users_function() -> None:
    assert method_label("hacpo") == "hacpo"
    assert method_label({"type": "python", "function": "a:b"}) == "a:b"
    for odd in (None, 5, {}, {"function": 5}, []):
        assert method_label(odd) == ""


def test_nobody_uses_what_is_missing_or_not_shared_whatever_a_rule_says() -> None:
    joint = JointSet(
        ("kim", "lee"),
        torch.tensor([[[1.0, math.nan]], [[0.0, 1.0]]], dtype=torch.float64),
        torch.ones(2, 2, dtype=torch.float64),
        torch.tensor([[True, False], [True, True]]),
    )
    made = with_rule(algorithm(), lambda joint: torch.ones(2, 2, *joint.rewards_JPG.shape[1:]), "r")
    used = ~made.judge(joint).value_KJPG.isnan()
    assert used.tolist() == [[[[True, False]], [[False, False]]], [[[True, False]], [[True, True]]]]
    # kim compares its only scored response with nothing; lee has three rewards, and its own differ.
    metrics = group_metrics(joint)
    assert [metrics[name]["groups_without_signal"] for name in ("kim", "lee")] == [1, 0]
    assert metrics["lee"]["groups_with_signal_from_peers_only"] == 0
    assert made.judge(joint).metrics["kim"] == {
        "baseline_bias": None,
        "guard_rate": None,
        **metrics["kim"],
    }

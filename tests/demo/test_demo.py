"""The embedded demo in small: its models, and everything that it shows and leaves behind."""

from __future__ import annotations

import io
import json
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from transformers import AutoModelForCausalLM

from hacrl.config import load_recipe
from hacrl.config.bundled import bundled_recipes, find_recipe
from hacrl.demo.run import run_demo
from hacrl.errors import UserError
from hacrl.fleet import LocalFleet
from hacrl.paths import resolve
from hacrl.records import Outcome
from hacrl.tasks import load_prompts
from hacrl.verify import VerifierPool, make_verifiers

ASSETS = resolve("bundled:demo/assets")


def test_the_models_are_small_and_of_different_families() -> None:
    folders = [ASSETS / "qwen3-char", ASSETS / "llama-bpe"]
    sizes = [(folder / "model.safetensors").stat().st_size for folder in folders]
    assert max(sizes) <= 1_000_000
    models = [AutoModelForCausalLM.from_pretrained(folder) for folder in folders]
    assert [type(model).__name__ for model in models] == ["Qwen3ForCausalLM", "LlamaForCausalLM"]
    assert all(65_000 <= sum(p.numel() for p in m.parameters()) <= 165_000 for m in models)


def test_training_and_held_out_problems_are_distinct_and_right() -> None:
    problems: dict[str, list[dict[str, str]]] = {}
    for name in ("train", "heldout"):
        lines = (ASSETS / f"{name}.jsonl").read_text().splitlines()
        problems[name] = [json.loads(line) for line in lines]
    questions = [row["question"] for rows in problems.values() for row in rows]
    assert len(questions) == len(set(questions)) == 2800
    assert len(problems["heldout"]) == 400
    for row in (row for rows in problems.values() for row in rows):
        expression = row["question"].removesuffix("=")
        assert set(expression) <= set("0123456789+-")
        assert str(eval(expression)) == row["answer"]


def test_each_model_is_strong_where_the_other_is_weak() -> None:
    recipe = load_recipe(
        find_recipe("demo"), ["tasks.arithmetic.source.path=bundled:demo/assets/heldout.jsonl"]
    )
    prompts = load_prompts(recipe.tasks)
    kinds = {
        kind: [p for p in prompts if set(p.text) & set("+-") == {sign}][:40]
        for kind, sign in (("addition", "+"), ("subtraction", "-"))
    }
    fleet = LocalFleet.from_recipe(recipe)
    accuracy = {}
    with VerifierPool(make_verifiers(recipe.tasks)) as verifiers:
        for kind, chosen in kinds.items():
            for agent, rollouts in fleet.sample(chosen, 8, occasion=kind).items():
                verdicts = verifiers.verify([(chosen[r.prompt], r.text) for r in rollouts])
                right = sum(v.outcome is Outcome.RIGHT for v in verdicts)
                missed = sum(v.outcome is Outcome.NO_ANSWER for v in verdicts)
                assert missed < 0.05 * len(verdicts)
                accuracy[agent, kind] = right / len(verdicts)
    assert accuracy["ada", "addition"] > accuracy["ada", "subtraction"] + 0.1
    assert accuracy["bob", "subtraction"] > accuracy["bob", "addition"] + 0.1


class Here(ThreadPoolExecutor):
    """Does here what the demo gives to its processes, as they would get it: pickled."""

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__(1)

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **_: Any) -> Future[Any]:
        def done(sent: bytes) -> Any:
            work, arguments = pickle.loads(sent)
            return pickle.loads(pickle.dumps(work(*arguments)))

        return super().submit(done, pickle.dumps((work, arguments)))


@pytest.mark.parametrize("where", ["here", pytest.param("processes", marks=pytest.mark.slow)])
def test_the_demo_shows_a_table_and_leaves_everything_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setenv("TRANSFORMERS_VERBOSITY", "error")
    problems = 400
    if where == "here":  # of each process, the imports alone take ten seconds of a core
        problems = 24
        heldout = (ASSETS / "heldout.jsonl").read_text().splitlines()[:problems]
        (tmp_path / "heldout.jsonl").write_text("\n".join(heldout))
        monkeypatch.setattr("hacrl.demo.run.HELDOUT", str(tmp_path / "heldout.jsonl"))
        monkeypatch.setattr("hacrl.demo.run.ProcessPoolExecutor", Here)
    text = io.StringIO()
    console = Console(file=text, width=100)
    small = ["steps=2", "prompts_per_step=4", "sampling.group_size=2"]
    folders = run_demo(tmp_path, 0, console, overrides=small)
    shown = text.getvalue()
    assert "HACPO − GSPO" in shown
    assert "\x1b" not in shown
    for agent in ("ada", "bob"):
        assert len([line for line in shown.splitlines() if f"│ {agent} " in line]) == 1
    results = json.loads((tmp_path / "demo" / "results.json").read_text())
    assert len(results["before"]["ada"]) == len(results["hacpo"]["bob"]) == problems
    assert (tmp_path / "demo" / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert folders == [tmp_path / "demo" / method for method in ("gspo", "hacpo")]
    for method in ("gspo", "hacpo"):
        folder = tmp_path / "demo" / method
        assert str(folder) in shown.replace("\n", "")
        assert len((folder / "metrics.jsonl").read_text().splitlines()) == 4
        assert (folder / "agents" / "bob" / "model.safetensors").is_file()


@pytest.mark.parametrize("name", bundled_recipes())
def test_every_bundled_recipe_is_valid(name: str) -> None:
    recipe = load_recipe(find_recipe(name))
    assert recipe.agents
    for spec in recipe.agents.values():
        assert spec.chat_template is None or resolve(spec.chat_template).is_file()


def test_a_process_that_is_ended_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_processes(*_: object) -> None:
        for process in multiprocessing.active_children():
            process.kill()

    monkeypatch.setattr("hacrl.demo.run._follow", end_processes)
    with pytest.raises(UserError, match="one of its two processes was killed"):
        run_demo(tmp_path, 0, Console(file=io.StringIO()), overrides=["steps=1"])

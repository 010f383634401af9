"""`hacrl verify`, as a command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet
from typer.testing import CliRunner, Result

from hacrl.cli.app import app
from hacrl.config import recipe_from_dict
from hacrl.training.train import train

Write = Callable[..., str]
Make = Callable[..., dict[str, Any]]


def hacrl(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def shown(*arguments: object) -> str:
    result = hacrl("verify", *arguments)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def refused(*arguments: object) -> str:
    result = hacrl("verify", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) <= 2
    return result.stderr


def table(text: str) -> dict[str, dict[str, str]]:
    """Count and share of each outcome, by task."""
    lines = text.split("\n\n")[0].splitlines()
    header, *rows = [re.split(r"\s{2,}", line.strip()) for line in lines]
    return {name: dict(zip(header[1:], cells, strict=True)) for name, *cells in rows}


@pytest.fixture
def recipe(tmp_path: Path) -> Write:
    """A recipe with one task for each list of golds."""

    def write(verifier: dict[str, object] | None = None, **golds: list[object]) -> str:
        tasks = {}
        for name, answers in golds.items():
            path = tmp_path / f"{name}.jsonl"
            path.write_text(
                "".join(json.dumps({"question": "?", "answer": gold}) + "\n" for gold in answers)
            )
            source = {"type": "jsonl", "path": str(path)}
            tasks[name] = {"source": source, "verifier": verifier or {"type": "math"}}
        raw = {"name": "r", "steps": 1, "prompts_per_step": 1, "tasks": tasks}
        path = tmp_path / "recipe.yaml"
        path.write_text(yaml.safe_dump(raw | {"agents": {"a": {"model": "none"}}}))
        return str(path)

    return write


def test_golds_are_scored_against_themselves(recipe: Write, tmp_path: Path) -> None:
    path = recipe(t=["so\n#### 72", r"so \boxed{\frac12}", 7, r"\frac13"])
    text = shown(path, "--rows", 0)
    assert table(text) == {"t": {"rows": "4", "right": "4 (100.0%)"}}
    assert "right: 4 of 4, for example" in text
    assert "t/0  reward 1\n    reference 72\n    answer    72\n    response  so #### 72" in text
    assert "t/1  reward 1" in text
    assert "t/2" not in text
    assert "t/3" in shown(path, "--rows", 0, "--examples", 4)
    assert "for example" not in shown(path, "--rows", 0, "--examples", 0)


def test_examples_are_of_all_tasks_in_turn(recipe: Write) -> None:
    text = shown(recipe(a=[1, 2, 3], b=[4, 5, 6]), "--examples", 3, "--rows", 0)
    assert re.findall(r"^  (\w/\d)", text, re.MULTILINE) == ["a/0", "b/0", "a/1"]


def test_shares_are_not_rounded_to_all_or_nothing(recipe: Write) -> None:
    text = shown(recipe(t=[*range(9_999), "y" * 2000]), "--rows", 0)
    assert table(text)["t"]["right"] == "9,999 (>99.9%)"
    assert table(text)["t"]["not_verifiable"] == "1 (<0.1%)"


def test_a_gold_that_cannot_be_judged_is_shown(recipe: Write) -> None:
    text = shown(recipe(t=["5", "y" * 2000]), "--rows", 0)
    assert table(text) == {"t": {"rows": "2", "right": "1 (50.0%)", "not_verifiable": "1 (50.0%)"}}
    assert re.search(r"not_verifiable: 1 of 2, for example\n  t/1  reward unscored\n", text)


def test_a_whole_response_that_is_compared_is_not_boxed(recipe: Write) -> None:
    text = shown(recipe({"type": "exact", "marker": None}, t=["yes", "a b"]))
    assert table(text)["t"]["right"] == "2 (100.0%)"
    assert "response  yes" in text


def test_responses_in_the_order_of_the_prompts(recipe: Write, tmp_path: Path) -> None:
    path = recipe(a=[1, 2], b=[3])
    file = tmp_path / "responses.csv"
    file.write_text("text\n\\boxed{1}\nno idea\n\\boxed{4}\n")
    out = tmp_path / "verdicts.jsonl"
    text = shown(path, "--responses", file, "--field", "text", "--out", out)
    assert table(text) == {
        "a": {"rows": "2", "right": "1 (50.0%)", "wrong": "0", "no_answer": "1 (50.0%)"},
        "b": {"rows": "1", "right": "0", "wrong": "1 (100.0%)", "no_answer": "0"},
        "all": {"rows": "3", "right": "1 (33.3%)", "wrong": "1 (33.3%)", "no_answer": "1 (33.3%)"},
    }
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows[1] == {
        "prompt_id": "a/1",
        "task": "a",
        "outcome": "no_answer",
        "reward": 0.0,
        "answer": None,
        "gold": "2",
        "response": "no idea",
    }
    assert [row["outcome"] for row in rows] == ["right", "no_answer", "wrong"]


def test_responses_that_name_their_prompts(recipe: Write, tmp_path: Path) -> None:
    file = tmp_path / "responses.parquet"
    rows = [{"prompt_id": f"t/{i}", "response": rf"\boxed{{{i}}}"} for i in (1, 0, 1, 1)]
    parquet.write_table(pa.Table.from_pylist(rows), file)
    assert table(shown(recipe(t=[0, 1]), "--responses", file))["t"] == {
        "rows": "4",
        "right": "4 (100.0%)",
    }


def test_hostile_texts_do_not_reach_the_terminal(recipe: Write, tmp_path: Path) -> None:
    file = tmp_path / "responses.jsonl"
    file.write_text(json.dumps({"response": "\x1b[31m[red]\ud800\n" + "x" * 500 + r" \boxed{1}"}))
    text = shown(recipe(t=[1]), "--responses", file, "--out", tmp_path / "out.jsonl")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)
    assert r"response  …xxx" in text
    assert text.split("response  …")[1].startswith("x" * 80)
    assert json.loads((tmp_path / "out.jsonl").read_text())["response"].startswith("\x1b[31m[red]")


def test_overrides_change_the_verifier(recipe: Write, tmp_path: Path) -> None:
    path = recipe(t=[12])
    file = tmp_path / "responses.jsonl"
    file.write_text('{"response": "It is 12."}')
    assert "no_answer" in table(shown(path, "--responses", file))["t"]
    last = "tasks.t.verifier.last_number=true"
    assert table(shown(path, last, "--responses", file))["t"]["right"] == "1 (100.0%)"


def test_the_rollouts_of_a_run_are_scored_again(tiny_recipe: Make, tmp_path: Path) -> None:
    run = train(recipe_from_dict(tiny_recipe(steps=1)), tmp_path)
    file = run.path / "rollouts" / "step-000000.parquet"
    out = tmp_path / "verdicts.jsonl"
    recipe = run.path / "recipe.yaml"
    shown(recipe, "--responses", file, "--field", "text", "--out", out)
    verdicts = [json.loads(line)["outcome"] for line in out.read_text().splitlines()]
    assert verdicts == parquet.read_table(file)["outcome"].to_pylist()


def test_mistakes(recipe: Write, tmp_path: Path) -> None:
    path = recipe(t=[1, 2])
    assert "verify: name a RECIPE, or benchmarks with --bench gsm8k,math500" in refused()
    assert "either a RECIPE or --bench" in refused(path, "--bench", "gsm8k")
    assert "--data needs --bench" in refused(path, "--data", tmp_path)
    assert "--bench: there is no benchmark 'gsm8'; did you mean" in refused("--bench", "gsm8")
    assert "aime25: holds no test file" in refused("--bench", "aime25", "--data", tmp_path)
    offline = refused("--bench", "aime25")
    assert "data set math-ai/aime25, split test: cannot be loaded" in offline
    assert "--data DIR" in offline
    assert "there is no folder" in refused(path, "--out", tmp_path / "none" / "x.jsonl")
    assert "none.jsonl: there is no such file" in refused(path, "--responses", "none.jsonl")
    assert "the name must end in .jsonl, .json" in refused(path, "--responses", tmp_path / "r.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds 0 responses for 2 prompts; give one for each in order, or"),
        ('{"response": "1"}', "holds 1 responses for 2 prompts"),
        ('{"text": "1"}', "line 1: no text in a field 'response'; the fields are: text\nName the"),
        ('{"response": 1}', "line 1: no text in a field 'response'"),
        ('{"response": "1", "prompt_id": "u/0"}', "line 1: prompt_id 'u/0' is not a prompt of the"),
        ('{"response": "1", "prompt_id": [1]}', "line 1: prompt_id [1] is not a prompt of the"),
    ],
)
def test_responses_that_do_not_fit(recipe: Write, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "responses.jsonl"
    file.write_text(text)
    assert message in refused(recipe(t=[1, 2]), "--responses", file)


def test_help_is_instant_and_shows_examples() -> None:
    script = """
import sys
from hacrl.cli.app import main
sys.argv = ["hacrl", "verify", "--help"]
try:
    main()
finally:
    loaded = {"torch", "transformers", "numpy", "pyarrow", "pandas", "datasets"} & set(sys.modules)
    assert not loaded, loaded
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "Examples:\n" in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_scoring_needs_no_torch(recipe: Write) -> None:
    script = f"""
import sys
from hacrl.cli.app import main
sys.argv = ["hacrl", "verify", {recipe(t=[1])!r}]
try:
    main()
finally:
    assert not {{"torch", "transformers", "datasets"}} & set(sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr

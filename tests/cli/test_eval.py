"""`hacrl eval` and `hacrl compare` as people use them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from typer.testing import CliRunner, Result

from hacrl.cli.app import app
from tests.evaluation.conftest import save_model

Make = Callable[..., dict[str, Any]]
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


def hacrl(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refused(*arguments: object) -> str:
    """What the command says as it refuses: a short error, exit code 2, no traceback."""
    result = hacrl(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) <= 2
    return result.stderr


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two model folders, `ann` and `ben`."""
    folder = tmp_path_factory.mktemp("models")
    for seed, name in enumerate(("ann", "ben")):
        save_model(folder / name, seed)
    return folder


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    path = tmp_path / "sums.jsonl"
    rows = [{"question": f"{i} + {i}?", "answer": str(2 * i)} for i in range(6)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def data(sums: Path, tmp_path: Path) -> Path:
    """A folder with two of the benchmarks."""
    for name in ("gsm8k", "aime25"):
        (tmp_path / "data" / name).mkdir(parents=True)
        (tmp_path / "data" / name / "test.jsonl").write_text(sums.read_text())
    return tmp_path / "data"


@pytest.mark.parametrize("command", ["eval", "compare"])
def test_help_shows_examples(command: str) -> None:
    output = hacrl(command, "--help").output
    assert re.search(rf"^ +hacrl {command}", output, re.MULTILINE)
    assert max(len(line) for line in output.splitlines()) <= 80


def test_a_table_plain_lines_and_files(models: Path, data: Path) -> None:
    result = hacrl(
        *("eval", models / "ann", models / "ben", "--bench", "gsm8k,aime25", "--data", data),
        *("--limit", 4, "--max-new-tokens", 6, "--show-failures", 1),
    )
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert not CONTROL.search(result.stdout)
    assert re.search(r"^ann gsm8k \| \d+/16 responses \| .* left$", result.stdout, re.MULTILINE)
    assert re.search(r"^ben +aime25 +4 +avg@1 +0\.000 +0\.000-0\.490", result.stdout, re.MULTILINE)
    assert re.search(r"^ann +average +8 +mean of 2", result.stdout, re.MULTILINE)
    assert "Wilson's where every problem counts 0 or 1" in result.stdout
    assert "note: ann has no chat template; it gets the problems as plain text" in result.stdout
    assert result.stdout.count("\n--- ") == 4
    assert "reference: 0" in result.stdout

    out = Path("evaluations")
    rows = json.loads((out / "results.json").read_text())
    assert [(row["agent"], row["benchmark"]) for row in rows] == [
        *(("ann", "gsm8k"), ("ann", "aime25"), ("ben", "gsm8k"), ("ben", "aime25")),
        *(("ann", "average"), ("ben", "average")),
    ]
    assert rows[0]["no_answer"] == 1.0
    assert rows[0]["greedy"] is True
    with (out / "results.csv").open() as file:
        assert [row["value"] for row in csv.DictReader(file)] == ["0.0"] * 6
    markdown = (out / "results.md").read_text().splitlines()
    assert markdown[0].startswith("| agent | benchmark | problems | metric | value |")
    assert len({line.count("|") for line in markdown[:8]}) == 1


def test_several_samples_show_every_estimator(models: Path, sums: Path) -> None:
    hacrl(*("eval", models / "ann", "--file", sums, "--max-new-tokens", 4, "--samples", 3))
    (row,) = json.loads(Path("evaluations/results.json").read_text())
    assert row["metric"] == "avg@3"
    assert row["temperature"] == 1.0
    assert {"avg@3", "pass@1", "pass@2", "pass@3", "best@3", "maj@3"} <= set(row)


def test_the_papers_protocol(models: Path, data: Path) -> None:
    # The model addresses 4,096 positions, which limit its responses as well.
    result = hacrl(
        *("eval", models / "ann", "--bench", "gsm8k,aime25", "--data", data, "--preset", "paper"),
        *("--limit", 1, "--max-new-tokens", 3),
    )
    assert result.exit_code == 0, result.output
    rows = json.loads(Path("evaluations/results.json").read_text())
    assert [(row["metric"], row.get("greedy")) for row in rows] == [
        ("avg@1", True),
        ("best@30", False),
        ("mean of 2", None),
    ]
    assert "give one of the two" in refused(
        *("eval", models / "ann", "--bench", "gsm8k", "--preset", "paper", "--samples", 2)
    )


def test_an_interrupted_evaluation_continues(
    models: Path, sums: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def interrupted() -> Iterator[Callable[[], bool]]:
        answers = iter([False, True])
        yield lambda: next(answers)

    command = ("eval", models / "ann", "--file", sums, "--max-new-tokens", 4, "--batch-size", 4)
    with monkeypatch.context() as patch:
        patch.setattr("hacrl.cli.eval.finish_phase_on_interrupt", interrupted)
        result = hacrl(*command)
    assert result.exit_code == 130
    assert "the same command continues" in result.stdout
    result = hacrl(*command)
    assert result.exit_code == 0
    assert "ann sums: 4 responses are already stored" in result.stdout


def test_a_run_before_and_after_and_its_comparison(tiny_recipe: Make, tmp_path: Path) -> None:
    raw = tiny_recipe(steps=1)
    raw["evaluation"] = {"tasks": {"fresh": raw["tasks"]["bits"]}}
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text(yaml.safe_dump(raw))
    trained = hacrl("train", recipe)
    assert "note: after step 1: fresh kim 0." in trained.stdout
    result = hacrl("eval", recipe, "runs/tiny", "--task", f"{recipe}:bits", "--max-new-tokens", "4")
    assert result.exit_code == 0, result.output
    rows = json.loads(Path("evaluations/results.json").read_text())
    assert [row["agent"] for row in rows] == [
        *("tiny/kim before", "tiny/lee before", "tiny/kim", "tiny/lee")
    ]
    compared = hacrl("compare", recipe, "runs/tiny")
    assert compared.exit_code == 0, compared.output
    assert re.search(r"^tiny/kim +tiny/kim before +bits +28 +avg@1", compared.stdout, re.MULTILINE)
    (kim, lee) = json.loads(Path("evaluations/comparison.json").read_text())
    assert (kim["agent"], lee["agent"]) == ("tiny/kim", "tiny/lee")
    assert "no problem that both have answered" in refused(
        "compare", recipe, "runs/tiny", "--bench", "gsm8k"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--bench gsm88", "there is no benchmark 'gsm88'; did you mean gsm8k?"),
        ("--bench math500 --data DATA", "math500: holds no test file (.jsonl, .json"),
        ("--file none.jsonl", "tasks.none: none.jsonl: there is no such file"),
        ("--file none.txt", "the name must end in .jsonl, .json, .csv, .parquet"),
        ("--task none.yaml", "recipe none.yaml: there is no such file"),
        ("--task demo:sums", "the recipe has no task sums; its tasks are arithmetic"),
        ("--data DATA", "--data: needs --bench"),
        ("", "nothing to evaluate on; name benchmarks with --bench"),
        ("./none --file SUMS", "target ./none: there is no such folder"),
        ("--file SUMS --file SUMS", "two tasks are called sums"),
        ("--file SUMS --device cuda:77", "device cuda:77 is not available here"),
    ],
)
def test_mistakes_are_refused_in_a_line_or_two(
    models: Path, data: Path, sums: Path, arguments: str, message: str
) -> None:
    words = [{"DATA": str(data), "SUMS": str(sums)}.get(w, w) for w in arguments.split()]
    assert message in refused("eval", models / "ann", *words)


def test_a_task_of_which_nothing_can_be_scored_is_noted(models: Path, tmp_path: Path) -> None:
    recipe = {
        "name": "odd",
        "steps": 1,
        "prompts_per_step": 1,
        "agents": {"a": {"model": "x"}},
        "tasks": {
            name: {
                "source": {"type": "jsonl", "path": f"{name}.jsonl"},
                "verifier": {"type": "python", "function": "judging:judge"},
            }
            for name in ("broken", "good")
        },
        "verification": {"max_errors": 1.0},
    }
    Path("odd.yaml").write_text(yaml.safe_dump(recipe))
    for name in ("broken", "good"):
        Path(f"{name}.jsonl").write_text(json.dumps({"question": f"{name}?", "answer": name}))
    Path("judging.py").write_text(
        "def judge(prompt, response):\n    return {'good': 1.0}[prompt.gold]\n"
    )
    command = ("eval", models / "ann", "--max-new-tokens", 2, "--task")
    result = hacrl(*command, "odd.yaml")
    assert result.exit_code == 0, result.output
    assert "note: ann broken: none of its responses could be scored" in result.stdout
    assert re.search(r"^ann +good +1 +avg@1 +1\.000", result.stdout, re.MULTILINE)
    assert "no response could be scored" in refused(*command, "odd.yaml:broken")


def test_a_benchmark_that_is_neither_local_nor_to_be_fetched(models: Path) -> None:
    message = refused("eval", models / "ann", "--bench", "amc23")
    assert "data set math-ai/amc23" in message
    assert "--data DIR" in message


def test_what_needs_no_model_loads_none(models: Path) -> None:
    assert "nothing to evaluate on" in refused("eval", "some/where")
    assert "cannot be fetched" in refused("compare", "some/where", models / "ann")

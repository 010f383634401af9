"""Every command of the README and the manual does what its page has it for."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from typer.testing import CliRunner

from hacrl.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
AGENTS = {"quickstart.md": ("ada", "bob")}
"""Names of the two agents where they are not `small` and `large`."""
BENCHMARKS = ("math500", "math", "gsm8k", "aime25", "amc23", "minerva_math", "olympiadbench")

_BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:hacrl|make) [^`]+)`")


@cache
def commands(page: Path) -> tuple[str, ...]:
    """Lines of code blocks that begin a command, and commands quoted in the text."""
    text = page.read_text("utf-8")
    lines = [line for block in _BLOCK.findall(text) for line in block.splitlines()]
    found = [line for line in lines if re.match(r"(hacrl|make|pip) ", line)]
    found += _INLINE.findall(_BLOCK.sub("", text))
    return tuple(dict.fromkeys(found))


def cases() -> list[tuple[Path, str]]:
    """Every command with the first page that has it: among the same agents it does the same."""
    found: dict[tuple[object, ...], tuple[Path, str]] = {}
    for page in PAGES:
        for command in commands(page):
            words = tuple(shlex.split(command, comments=True))
            found.setdefault((AGENTS.get(page.name), words), (page, command))
    return list(found.values())


CASES = cases()


def named(case: object) -> str:
    return case.name if isinstance(case, Path) else str(case)


@pytest.fixture(scope="module")
def workspace(
    tmp_path_factory: pytest.TempPathFactory,
    qwen_folder: Path,
    llama_folder: Path,
    problems_file: Path,
) -> Callable[[str, str], Path]:
    """Makes a folder with what the manual speaks of: a recipe, runs of it, answers, benchmarks."""

    @cache
    def make(first: str, second: str) -> Path:
        folder = tmp_path_factory.mktemp("workspace")
        task: dict[str, Any] = {
            "source": {"type": "jsonl", "path": str(problems_file)},
            "verifier": {"type": "exact", "marker": None},
        }
        recipe = {
            "name": "my",
            "steps": 2,
            "prompts_per_step": 4,
            "threads": 1,
            "agents": {
                first: {"model": str(qwen_folder)},
                second: {"model": str(llama_folder), "lora": {"rank": 2}},
            },
            "tasks": {"t": task},
            "sampling": {"group_size": 4, "max_new_tokens": 3},
            "evaluation": {"tasks": {"held": task}, "every": 1, "limit": 3},
            "checkpoints": {"every": 1, "best": "held"},
        }
        (folder / "my.yaml").write_text(yaml.safe_dump(recipe, sort_keys=False))
        result = CliRunner().invoke(
            app, ["train", str(folder / "my.yaml"), "--runs", str(folder / "runs")]
        )
        assert result.exit_code == 0, result.output
        for name in ("alone", "together", "gspo", "hacpo"):
            shutil.copytree(folder / "runs" / "my", folder / "runs" / name)
        rows = [json.loads(line) for line in problems_file.read_text().splitlines()]
        (folder / "answers.jsonl").write_text(
            "".join(json.dumps({"text": row["answer"]}) + "\n" for row in rows)
        )
        return folder

    return make


def put_benchmarks(data: Path, folder: Path) -> None:
    for name in BENCHMARKS:
        (folder / name).mkdir(parents=True)
        with (data / name / "test.jsonl").open() as file:
            rows = [json.loads(line) for line in islice(file, 2)]
        for row in rows:  # in what the tiny models can read
            row["question" if "question" in row else "problem"] = "0+1="
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / name / "test.jsonl").write_text(text)


@pytest.mark.usefixtures("sketches")
@pytest.mark.parametrize(("page", "command"), CASES, ids=named)
def test_a_command(
    page: Path,
    command: str,
    workspace: Callable[[str, str], Path],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = shlex.split(command.replace("…", "").split(">")[0], comments=True)
    program, *arguments = words
    if program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert {word for word in arguments if "=" not in word} <= set(targets)
        return
    if program == "pip":
        assert arguments[0] == "install"
        return
    if not complete(arguments):
        parse(arguments)
        return
    made = workspace(*AGENTS.get(page.name, ("small", "large")))
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    if "--data" in arguments:
        put_benchmarks(request.getfixturevalue("data"), tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    arguments = [re.sub(r"^steps=\d+$", "steps=3", word) for word in arguments]
    if arguments[0] == "train" and "--resume" not in arguments:
        arguments.append("--overwrite")
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output


def complete(arguments: list[str]) -> bool:
    """Whether a command can be run here: it is whole and not the demo, needs no network, and no
    cluster or engine, which have tests of their own."""
    fetches = {"--push", "--preset"} & set(arguments)
    fetches |= {w for w in arguments if "ray" in w or "vllm" in w or w.startswith("paper/")}
    fetches |= {"--bench"} & set(arguments) if "--data" not in arguments else set()
    speaks_of_one = any(word.isupper() or word == "demo" for word in arguments[:2])
    return not fetches and len(arguments) > 1 and not speaks_of_one


def parse(arguments: list[str]) -> None:
    """See that there is such a command, with such options."""
    command = typer.main.get_command(app).commands[arguments[0]]  # type: ignore[attr-defined]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in arguments if word.startswith("--")} <= known | {"--help"}


def test_there_are_commands_to_try() -> None:
    assert len(CASES) > 40
    assert sum(command.startswith("hacrl ") for _, command in CASES) > 30

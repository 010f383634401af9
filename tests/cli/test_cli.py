from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner, Result

from hacrl.cli.app import app
from hacrl.config import bundled, load_recipe
from hacrl.console.observer import Observer
from hacrl.errors import UserError

Make = Callable[..., dict[str, Any]]
Write = Callable[..., str]

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


def hacrl(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refused(*arguments: object) -> str:
    """What the command says as it refuses: a short error, exit code 2, no traceback."""
    result = hacrl(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) <= 2
    assert "Traceback" not in result.output
    return result.stderr


@pytest.fixture
def recipe_file(tiny_recipe: Make, tmp_path: Path) -> Write:
    def write(**changes: Any) -> str:
        path = tmp_path / "tiny.yaml"
        path.write_text(yaml.safe_dump(tiny_recipe(**changes)))
        return str(path)

    return write


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with three bundled recipes."""
    folder = tmp_path / "package" / "recipes"
    for name in ("demo", "paper/big", "paper/small"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.yaml").write_text(f"\n# All about {name} [x].\n# More.\nname: x\n")
    monkeypatch.setattr(bundled, "resolve", lambda path: folder)
    return folder


def test_what_needs_no_model_imports_no_torch(recipe_file: Write, tmp_path: Path) -> None:
    wrong = recipe_file(stesp=3)
    script = f"""
import sys
from hacrl.cli.app import main
for words in (["--help"], ["train", "--help"], ["check", "--help"], ["eval", "--help"],
              ["verify", "--help"], ["demo", "--help"], ["export", "--help"], ["compare", "--help"],
              ["recipes"], ["recipes", "x"],
              ["report", "--help"], ["runs", "--help"], ["runs", {str(tmp_path)!r}],
              ["train", {wrong!r}], ["check", {wrong!r}], ["train", "none.yaml"]):
    sys.argv = ["hacrl", *words]
    try:
        main()
    except SystemExit:
        pass
    loaded = {{"torch", "transformers", "numpy", "pyarrow", "matplotlib"}} & set(sys.modules)
    assert not loaded, (words, loaded)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "did you mean steps?" in result.stderr


@pytest.mark.parametrize(
    "command",
    ["", *(command.name for command in app.registered_commands)],
)
def test_help_shows_examples(command: str) -> None:
    result = hacrl(*command.split(), "--help")
    assert result.exit_code == 0
    assert "Examples:\n" in result.output
    assert re.search(rf"^ +hacrl {command}", result.output, re.MULTILINE)
    assert max(len(line) for line in result.output.splitlines()) <= 80


def test_version() -> None:
    assert re.fullmatch(r"hacrl \d+\.\d+\.\d+\n", hacrl("--version").output)


def test_bundled_recipes_are_listed_with_what_they_say_of_themselves(shelf: Path) -> None:
    listed = [line.split(maxsplit=1) for line in hacrl("recipes").output.splitlines()]
    assert [(name, text.strip()) for name, text in listed] == [
        (name, f"All about {name} [x].") for name in ("demo", "paper/big", "paper/small")
    ]


def test_a_bundled_recipe_is_printed_as_it_is(shelf: Path) -> None:
    assert hacrl("recipes", "big").output == (shelf / "paper" / "big.yaml").read_text()
    assert hacrl("recipes", "paper/big").output == hacrl("recipes", "big").output


@pytest.mark.parametrize("command", ["train", "check", "recipes"])
def test_an_unknown_recipe_is_refused_with_the_nearest(shelf: Path, command: str) -> None:
    assert "recipe domo: neither a file nor a bundled recipe; did you mean demo?" in refused(
        command, "domo"
    )
    assert "did you mean paper/small?" in refused(command, "smal")
    assert "`hacrl recipes` lists those" in refused(command, "xyzzy")
    assert "recipe demo.yml: there is no such file" in refused(command, "demo.yml")


def test_a_name_that_several_recipes_have_is_refused(shelf: Path) -> None:
    (shelf / "other").mkdir()
    (shelf / "other" / "big.yaml").write_text("name: x\n")
    assert "could be other/big or paper/big" in refused("recipes", "big")


@pytest.mark.parametrize("name", bundled.bundled_recipes())
def test_every_bundled_recipe_is_valid_and_described(name: str) -> None:
    path = bundled.find_recipe(name)
    assert bundled.describe(path)
    load_recipe(path)


@pytest.mark.usefixtures("sketches")
def test_training_leaves_a_run_folder_and_plain_lines(recipe_file: Write, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    result = hacrl("train", recipe_file(), "steps=2", "--runs", runs)
    assert result.exit_code == 0, result.output
    assert not CONTROL.search(result.output)
    assert "Traceback" not in result.output
    assert len(re.findall(r"^step \d/2 \| kim .* left$", result.stdout, re.MULTILINE)) == 2
    assert f"finished: {runs / 'tiny'}" in result.stdout
    assert result.stderr == ""
    assert json.loads((runs / "tiny" / "state.json").read_text())["state"] == "finished"
    assert load_recipe(runs / "tiny" / "recipe.yaml").steps == 2
    assert result.stdout.endswith(f"report: {runs / 'tiny' / 'report.html'}\n")
    assert "</html>" in (runs / "tiny" / "report.html").read_text()
    assert re.search(r"^tiny +hacpo +finished +2/2 +kim 0", hacrl("runs", runs).stdout, re.M)

    assert "--overwrite to replace" in refused("train", recipe_file(), "--runs", runs)
    assert hacrl("train", recipe_file(), "steps=1", "--runs", runs, "--overwrite").exit_code == 0
    assert load_recipe(runs / "tiny" / "recipe.yaml").steps == 1


def test_a_report_that_fails_leaves_the_run_finished(
    recipe_file: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise UserError("no space")

    monkeypatch.setattr("hacrl.report.writing.write_report", full)
    result = hacrl("train", recipe_file(), "steps=1", "--runs", tmp_path / "runs")
    assert result.exit_code == 0
    assert result.stdout.endswith("note: no report: no space\n")


def test_reports_and_lists_of_what_is_no_run_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")  # the report's charts know the bounds of the clip from there
    assert "is not a run folder" in refused("report", tmp_path)
    assert "there is no such folder" in refused("report", tmp_path / "none")
    assert "holds no runs" in refused("runs", tmp_path)


def test_check_prints_plain_text(recipe_file: Write) -> None:
    result = hacrl("check", recipe_file(), "agents.lee.model=some/where")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "ok, with 1 warning"
    assert not CONTROL.search(result.output)
    assert result.output.isascii()


@pytest.mark.parametrize("command", ["train", "check"])
@pytest.mark.parametrize(
    ("overrides", "part"),
    [
        ("stesp=3", "unknown key stesp; did you mean steps?"),
        ("steps=none", "steps: "),
        ("tasks.bits.source.path=none.jsonl", "none.jsonl: there is no such file"),
        ("tasks.bits.source.answer=gold", "problems.jsonl, line 1: no field 'gold'"),
        ("sharing={kim:[tom]}", "sharing: tom is not an agent"),
        ("agents.lee.model=./none", "agent lee: model folder ./none does not exist"),
        ("agents.lee.stop=[<end>]", "agent lee: stop token '<end>'"),
        ("prompts.max_tokens=1", "by agent: kim 28 (limit 1), lee 28 (limit 1)"),
        ("tasks.bits.verifier.wrong=-1", "tasks.bits.verifier.wrong: capability.metric"),
        ("sampling.group_size=1 sharing=nobody", "sampling.group_size: agent kim"),
        ("method=grpo sharing=everyone", "ratio.level: token-level ratios"),
    ],
)
def test_bad_input_is_refused_before_the_run(
    recipe_file: Write, tmp_path: Path, command: str, overrides: str, part: str
) -> None:
    runs = ["--runs", tmp_path / "runs"] if command == "train" else []
    assert part in refused(command, recipe_file(), *overrides.split(), *runs)
    assert not (tmp_path / "runs").exists()


def test_two_agents_of_the_same_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text("agents:\n  kim: {model: a}\n  kim: {model: b}\n")
    assert "line 3: key kim is given twice" in refused("train", path)


def test_an_empty_data_file_is_refused(recipe_file: Write, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    message = refused("check", recipe_file(), f"tasks.bits.source.path={tmp_path / 'empty.jsonl'}")
    assert "the source has no problems" in message


def test_debug_shows_where_an_error_comes_from(tmp_path: Path) -> None:
    result = hacrl("--debug", "train", tmp_path / "none.yaml")
    assert isinstance(result.exception, UserError)
    assert result.exit_code == 1


def test_a_bug_is_not_dressed_up(recipe_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("hacrl.training.train.train", broken)
    assert isinstance(hacrl("train", recipe_file()).exception, ZeroDivisionError)


def test_a_second_interrupt_is_said_briefly(
    recipe_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def impatient(recipe: object, root: Path, observer: Observer, **options: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hacrl.training.train.train", impatient)
    result = hacrl("train", recipe_file())
    assert result.exit_code == 130
    assert result.stderr == "stopped at once; nothing more was saved\n"


UNDRAWN = """
import hacrl.report.drawing
hacrl.report.drawing._svg = lambda figure, name: f'<svg id="{name}"/>'
"""
"""What the fixture `sketches` does, for another process."""


@pytest.mark.usefixtures("sketches")
def test_an_interrupt_ends_after_the_phase_and_saves_the_agents(
    recipe_file: Write, tmp_path: Path
) -> None:
    script = f"{UNDRAWN}\nfrom hacrl.cli.app import main\nmain()"
    command = [sys.executable, "-c", script, "train", recipe_file(), "steps=100000"]
    command += ["--runs", str(tmp_path / "runs")]
    quiet = "HF_HUB_DISABLE_PROGRESS_BARS"  # the command sees to that itself
    with subprocess.Popen(
        command,
        env={name: value for name, value in os.environ.items() if name != quiet},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a terminal interrupts the whole group
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("step 2/"):
                os.killpg(process.pid, signal.SIGINT)
                break
        stdout, stderr = process.communicate(timeout=600)
    run = tmp_path / "runs" / "tiny"
    assert process.returncode == 130, stderr
    assert f"saved in {run / 'agents'}" in stdout
    assert stderr == "stopping after this phase; Ctrl-C again stops at once\n"
    assert json.loads((run / "state.json").read_text())["state"] == "interrupted"
    assert "--resume continues from here" in stdout
    done = len((run / "metrics.jsonl").read_text().splitlines()) // 2
    resumed = hacrl(
        "train", recipe_file(), f"steps={done + 1}", "--runs", tmp_path / "runs", "--resume"
    )
    assert f"continuing after step {done}" in resumed.stdout
    assert "changed since" in resumed.stdout
    assert "steps was 100000" in resumed.stdout
    assert "interrupted" in (run / "report.html").read_text()
    for name in ("kim", "lee"):
        folder = run / "agents" / name
        AutoModelForCausalLM.from_pretrained(folder)
        AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--fleet", "local", "fleet=ray", "agents.kim.ranks=2"], "contradicts"),
        (["--fleet", "local", "agents.kim.ranks=2"], "an agent of several ranks needs fleet: ray"),
        (["--fleet", "local", "fleet.type=ray"], "override fleet.type: given twice"),
    ],
)
def test_the_fleet_option_is_an_override(
    tiny_recipe: Callable[..., dict[str, Any]], tmp_path: Path, arguments: list[str], part: str
) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(yaml.safe_dump(tiny_recipe(fleet="ray")))
    result = CliRunner().invoke(
        app, ["train", str(path), "--runs", str(tmp_path / "runs"), *arguments]
    )
    assert result.exit_code == 2
    assert part in result.output
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--temperature", value) for value in ("nan", "inf", "1e-5")),
        *(("--samples", value) for value in ("0", "1000000000000")),
        *(("--max-new-tokens", "1000000000000"), ("--limit", "1" + "0" * 30)),
        ("--batch-size", "1" + "0" * 30),
    ],
)
def test_an_option_has_the_bounds_of_the_key_that_it_stands_for(
    qwen_folder: Path, problems_file: Path, tmp_path: Path, option: str, value: str
) -> None:
    arguments = ["eval", str(qwen_folder), "--file", str(problems_file), option, value]
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path)])
    assert result.exit_code == 2, result.output
    assert option in result.output

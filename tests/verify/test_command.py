import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from hacrl.errors import UserError
from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify import Command, VerifierPool

PROMPT = Prompt("t/0", "t", "What is 6·7?", "42", metadata={"unit": "½", "parts": [6, 7]})


def python(source: str, **options: object) -> Command:
    return Command((sys.executable, "-c", source), **{"wrong": -1.0, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "reward", "outcome"), [(0, 1.0, Outcome.RIGHT), (1, -1.0, Outcome.WRONG)]
)
def test_exit_codes(code: int, reward: float, outcome: Outcome) -> None:
    assert python(f"raise SystemExit({code})")(PROMPT, "x") == Verdict(reward, outcome)


@pytest.mark.parametrize("source", ["raise SystemExit(2)", "import os; os.abort()"])
def test_other_exit_codes_are_scorer_errors(source: str) -> None:
    with pytest.raises(RuntimeError, match="exited with code"):
        python(source)(PROMPT, "x")


def test_the_reason_of_an_error_is_told() -> None:
    with pytest.raises(RuntimeError, match="code 7: no such proof"):
        python("import sys; print('no such proof', file=sys.stderr); sys.exit(7)")(PROMPT, "x")


def test_response_and_problem_reach_the_program() -> None:
    source = (
        "import json, os, sys; p = json.load(open(os.environ['HACRL_PROMPT']));"
        "ok = sys.stdin.read() == 'it is ½ of 84' and p['gold'] == '42' and p['id'] == 't/0'"
        " and p['metadata'] == {'unit': '½', 'parts': [6, 7]}; sys.exit(not ok)"
    )
    assert python(source)(PROMPT, "it is ½ of 84").outcome is Outcome.RIGHT


@pytest.mark.parametrize(
    ("printed", "verdict"),
    [
        ("1.0", Verdict(1.0, Outcome.RIGHT)),
        ("checking\\n0.25\\n\\n", Verdict(0.25, Outcome.WRONG)),
        ("0", Verdict(0.0, Outcome.WRONG)),
    ],
)
def test_scores(printed: str, verdict: Verdict) -> None:
    assert python(f"print('{printed}')", judged_by="score")(PROMPT, "x") == verdict
    with pytest.raises(RuntimeError, match="exited with code 1"):
        python(f"print('{printed}'); raise SystemExit(1)", judged_by="score")(PROMPT, "x")


@pytest.mark.parametrize("printed", ["", "yes", "nan", "inf", "-1"])
def test_scores_that_mean_nothing(printed: str) -> None:
    with pytest.raises((RuntimeError, ValueError)):
        python(f"print('{printed}')", judged_by="score")(PROMPT, "x")


def test_a_negative_score_where_it_was_announced() -> None:
    found = python("print(-1)", judged_by="score", lowest=-1.0)(PROMPT, "x")
    assert found == Verdict(-1.0, Outcome.WRONG)


def test_all_of_its_processes_end_with_it(tmp_path: Path) -> None:
    # The grandchild has a session of its own; it would write a file after two seconds.
    late = tmp_path / "late"
    source = (
        "import subprocess, sys, time\n"
        "late = f'import time; time.sleep(2); open({sys.argv[1]!r}, chr(119))'\n"
        "subprocess.Popen([sys.executable, '-c', late], start_new_session=True)\n"
        "time.sleep(60)"
    )
    start = time.monotonic()
    command = Command((sys.executable, "-c", source, str(late)), seconds=0.7, wrong=-1.0)
    assert command(PROMPT, "x") == Verdict(-1.0, Outcome.TIMEOUT)
    assert time.monotonic() - start < 30, "half of what it would sleep"
    time.sleep(2)
    assert not late.exists()


def test_nothing_is_left_when_the_worker_is_killed(tmp_path: Path) -> None:
    late = tmp_path / "late"
    source = f"import time; time.sleep(3); open({str(late)!r}, 'w')"
    with VerifierPool({"t": python(source, seconds=60)}, seconds=1.0) as pool:
        assert pool.verify([(PROMPT, "x")]) == [Verdict(-1.0, Outcome.TIMEOUT)]
    time.sleep(3)
    assert not late.exists()


def test_memory_and_files_are_limited(tmp_path: Path) -> None:
    assert python("bytearray(1 << 30)", memory=1 << 28)(PROMPT, "x").outcome is Outcome.WRONG
    assert python("bytearray(1 << 30)")(PROMPT, "x").outcome is Outcome.RIGHT
    big = f"open({str(tmp_path / 'big')!r}, 'wb').write(bytes(65 << 20))"
    assert python(big)(PROMPT, "x").outcome is Outcome.WRONG


def test_only_what_is_named_is_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HACRL_TEST_TOKEN", "secret")
    source = "import os; raise SystemExit('HACRL_TEST_TOKEN' in os.environ)"
    assert python(source)(PROMPT, "x").outcome is Outcome.RIGHT
    assert python(source, environment=("HACRL_TEST_TOKEN",))(PROMPT, "x").outcome is Outcome.WRONG


def test_the_network_is_out_of_reach() -> None:
    if subprocess.run(["unshare", "-Un", "true"], capture_output=True).returncode:
        pytest.skip("this machine does not allow namespaces")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        source = f"import socket; socket.create_connection(('127.0.0.1', {port}), 1)"
        assert python(source)(PROMPT, "x").outcome is Outcome.WRONG
        subprocess.run([sys.executable, "-c", source], check=True)


def test_it_runs_where_the_run_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checker = tmp_path / "check"
    checker.write_text('#!/bin/sh\ngrep -q "$(cat gold)"\n')
    checker.chmod(0o755)
    (tmp_path / "gold").write_text("42")
    monkeypatch.chdir(tmp_path)
    command = Command(("./check",))
    command.check()
    assert command(PROMPT, "it is 42").outcome is Outcome.RIGHT
    assert command(PROMPT, "it is 43").outcome is Outcome.WRONG


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(UserError, match="no-such-program is not found"):
        Command(("no-such-program",)).check()
    with pytest.raises(RuntimeError, match="code 127: no-such-program: No such file"):
        Command(("no-such-program",))(PROMPT, "x")


@pytest.mark.parametrize("response", ["", "\ud800", "\0", "x" * 1_000_000])
def test_any_response_can_be_fed(response: str) -> None:
    source = "import sys; sys.exit(len(sys.stdin.buffer.read()) not in (0, 1, 1_000_000))"
    assert python(source)(PROMPT, response).outcome is Outcome.RIGHT


def test_metadata_of_any_kind() -> None:
    prompt = Prompt("t/0", "t", "?", "\ud800", metadata={"path": Path("x"), "pair": (1, 2)})
    source = "import json, os; json.load(open(os.environ['HACRL_PROMPT']))"
    assert python(source)(prompt, "x").outcome is Outcome.RIGHT
    assert hash(python(source).screen(prompt, "x"))  # the case is text


def test_nothing_stays_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = "import tempfile; raise SystemExit('hacrl-' not in tempfile.mkstemp()[1])"
    assert python(source)(PROMPT, "x").outcome is Outcome.RIGHT
    assert list(tmp_path.iterdir()) == []

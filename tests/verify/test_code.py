import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify import Code, VerifierPool
from hacrl.verify import code as code_module
from hacrl.verify.code import extract_code
from hacrl.verify.confine import Ended

TESTS = "assert add(1, 2) == 3\nassert add(-1, 1) == 0"
GOOD = "def add(a, b):\n    return a + b"


def fenced(code: str, language: str = "python") -> str:
    return f"So:\n```{language}\n{code}\n```\nDone."


def judged(response: str, tests: str = TESTS, seconds: float = 5.0) -> Verdict:
    return Code(seconds=seconds, wrong=-1.0)(Prompt("t/0", "t", "?", tests), response)


@pytest.mark.parametrize(
    "response",
    [
        fenced(GOOD),
        fenced(GOOD, "py"),
        fenced(GOOD, "Python3"),
        fenced(GOOD, ""),
        GOOD,
        f"<think>{fenced('x = 1')}</think>{fenced(GOOD)}",
        fenced("def add(a, b): return 0") + fenced(GOOD),
        fenced(GOOD) + fenced("add(1, 2)  # 3", "text") + fenced("$ python add.py", ""),
        "1. First:\n   ```python\n   def add(a, b):\n       return a + b\n   ```",
        fenced("if __name__ == '__main__':\n    input()\n" + GOOD),
        fenced("print('much', 'to', 'say')\n" + GOOD),
        fenced(
            "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"
            "def add(a, b): return P(a).x + b"
        ),
        fenced(
            "import asyncio\nasync def f(x): return x\ndef add(a, b): return asyncio.run(f(a+b))"
        ),
        fenced(
            GOOD
            + "\nimport threading, time\nthreading.Thread(target=time.sleep, args=[60]).start()"
        ),
    ],
)
def test_right(response: str) -> None:
    verdict = judged(response)
    assert (verdict.reward, verdict.outcome) == (1.0, Outcome.RIGHT)


@pytest.mark.parametrize(
    "code",
    [
        "def add(a, b): return a - b",
        "def add(a, b):",
        "def plus(a, b): return a + b",
        "raise SystemExit(0)",
        "import os\nos._exit(0)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "import ctypes\nctypes.string_at(0)",
        "add = lambda *a: bytearray(4 << 30)",
        "def add(a, b): return add(a, b)",
        "print('passed')\nraise ValueError",
        "import subprocess\ndef add(*a): return int(subprocess.getoutput(f'echo {sum(a)}'))",
        "\0",
        "(" * 5000,
    ],
)
def test_wrong(code: str) -> None:
    assert judged(fenced(code)) == Verdict(-1.0, Outcome.WRONG, code.strip("\n"))


@pytest.mark.parametrize(
    "response", ["", "I cannot.", f"```python\n{GOOD}", f"<think>{fenced(GOOD)}", "```\n```"]
)
def test_no_answer(response: str) -> None:
    assert judged(response) == Verdict(-1.0, Outcome.NO_ANSWER)


def test_a_slow_start_is_not_the_answers_doing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = code_module.run_confined

    def slowly(argv: Sequence[str], *args: Any, **options: Any) -> Ended:
        shell = 'sleep 1; exec "$0" "$@"'
        return run(["sh", "-c", shell, *argv], *args, **options)

    monkeypatch.setattr(code_module, "run_confined", slowly)
    assert judged(fenced(GOOD), seconds=0.4).outcome is Outcome.RIGHT
    assert judged(fenced("while True: pass"), seconds=0.4).outcome is Outcome.TIMEOUT


@pytest.mark.parametrize("tests", ["", "assert ("])
def test_tests_that_are_not_python_are_not_verifiable(tests: str) -> None:
    assert judged(fenced(GOOD), tests).outcome is Outcome.NOT_VERIFIABLE


@pytest.mark.parametrize(
    "code",
    ["while True: pass", "import time\ntime.sleep(60)", "x = 7 ** (7 ** 9)"],
)
def test_endless_answers_time_out(code: str) -> None:
    assert judged(fenced(code), "", seconds=1.0).outcome is Outcome.NOT_VERIFIABLE
    assert judged(fenced(code), TESTS, seconds=1.0) == Verdict(-1.0, Outcome.TIMEOUT, code)


@pytest.mark.parametrize(
    "code",
    [
        "open('big', 'wb').write(bytes(65 << 20))",
        "import socket\nsocket.create_connection(('127.0.0.1', 80))",
        "import socket\nsocket.getaddrinfo('example.org', 80)",
        "import os\nos.fork()",
        "import os\nos.system('true')",
        "import os\nassert 'HACRL_TEST_TOKEN' not in os.environ\nraise ValueError",
    ],
)
def test_what_is_not_allowed(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HACRL_TEST_TOKEN", "secret")
    assert judged(fenced(f"{code}\nok = 1"), "assert ok == 1").outcome is Outcome.WRONG


def test_files_of_an_answer_are_its_own_and_vanish() -> None:
    code = "import os\nassert os.listdir() == []\nopen('x', 'w').write('1')\nwhere = os.getcwd()"
    assert [judged(fenced(code), "assert where").outcome for _ in range(2)] == [Outcome.RIGHT] * 2


@pytest.fixture(scope="module")
def pool() -> Iterator[VerifierPool]:
    with VerifierPool({"t": Code(seconds=1.0)}, workers=2, seconds=10.0) as pool:
        yield pool


def test_under_the_pool(pool: VerifierPool) -> None:
    responses = [
        GOOD,
        "while True: pass",
        "I cannot.",
        fenced("import os; os.abort()"),
        fenced(GOOD),
    ]
    found = pool.verify([(Prompt("t/0", "t", "?", TESTS), text) for text in responses])
    assert [verdict.outcome for verdict in found] == [
        Outcome.RIGHT,
        Outcome.TIMEOUT,
        Outcome.NO_ANSWER,
        Outcome.WRONG,
        Outcome.RIGHT,
    ]


@settings(max_examples=20, deadline=None)
@given(st.text(max_size=200) | st.text(alphabet="\n`'\"(:=)\\\0 def", max_size=200))
def test_any_text_has_an_outcome(pool: VerifierPool, text: str) -> None:
    (verdict,) = pool.verify([(Prompt("t/0", "t", "?", "raise ValueError"), text)])
    assert verdict.outcome in {Outcome.WRONG, Outcome.NO_ANSWER}


@pytest.mark.parametrize("unit", ["```\n", "```python\n", "`", "\n", " ", "x\n", "````\n```\n"])
def test_code_is_found_in_linear_time(unit: str) -> None:
    start = time.process_time()
    extract_code(unit * (200_000 // len(unit)))
    assert time.process_time() - start < 1.0

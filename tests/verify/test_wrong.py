"""Tests that check nothing are not verifiable; tests that check anything are."""

import ast
from collections.abc import Iterator

import pytest

from hacrl.records import Outcome, Prompt
from hacrl.verify import Code, Total, VerifierPool
from hacrl.verify.wrong import can_fail, hopeless_programs, plausible_programs

CODE = Code(seconds=2.0)
GOOD = "def add(a, b): return a + b"

SILENT = [
    "# nothing",
    "'assert add(1, 2) == 3'",
    "pass",
    "True",
    "assert True",
    "assert 1 == 1, 'never'",
    "assert (add(1, 2) == 5, 'a tuple is true')",
    "assert 'add'",
    '{"inputs": [[1, 2]], "outputs": [3]}',
    '{"inputs": ["1 2"], "outputs": ["3"], "fn_name": null, "timed": false}',
    '[{"input": "1 2", "output": "3"}]',
    "inputs = [[1, 2]]\noutputs = [3]",
    "import math",
    "def check(candidate):\n    assert candidate(1, 2) == 3",
    "METADATA = {}\n\n\ndef check(candidate):\n    assert candidate(1, 2) == 3",
    "def test_add():\n    assert add(1, 2) == 3",
    "async def test_add():\n    assert add(1, 2) == 3",
    "test = lambda: add(1, 2) == 3",
    "class TestAdd:\n    def test(self):\n        assert add(1, 2) == 3",
    "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
    "        self.assertEqual(add(1, 2), 3)",
    "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
    "        self.assertEqual(add(1, 2), 3)\nif __name__ == '__main__':\n    unittest.main()",
    "if __name__ == '__main__':\n    assert add(1, 2) == 3",
    "def run():\n    assert add(1, 2) == 3\nif __name__ == '__main__':\n    run()\nelse:\n    pass",
    "add(1, 2)",
    "result = add(1, 2)",
    "add(1, 2) == 3",
    "print(add(1, 2) == 3)",
    "for a in range(3):\n    print(len(add(a, 1)) + 1)",
    "try:\n    assert add(1, 2) == 3\nexcept Exception:\n    print('failed')",
    "try:\n    assert add(1, 2) == 3\nexcept AssertionError as error:\n    result = error\n"
    "except NameError:\n    pass",
    "if 'add' in globals():\n    assert add(1, 2) == 3",
    "import contextlib\nwith contextlib.suppress(Exception):\n    assert add(1, 2) == 3",
    "assert add(1, 2) == 3 or True",
    "assert sorted([3, 1]) == [1, 3]",
    "def check(f):\n    for a, b, c in []:\n        assert f(a, b) == c\ncheck(add)",
    "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
    "        self.assertEqual(add(1, 2), 3)\n"
    "unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(T))",
]

SPEAKING = [
    ("assert add(1, 2) == 3", GOOD),
    ("assert add(1, 2) != 4", GOOD),
    ("assert not add(1, 2) == 4", GOOD),
    ("assert add(1, 2)", GOOD),
    ("assert not add(1, -1)", GOOD),
    ("assert add(1, 2) is not None", GOOD),
    ("assert add(1, 2) < 4 and add(1, 2) > 2", GOOD),
    ("assert isinstance(add(1, 2), int)", GOOD),
    ("assert add(1, 2) in (3, 4)", GOOD),
    ("assert add(1, 2) not in (5, 6)", GOOD),
    ("assert abs(add(0.1, 0.2) - 0.3) < 1e-9", GOOD),
    ("import math\nassert math.isclose(add(0.1, 0.2), 0.3)", GOOD),
    ("assert str(add(1, 2)) == '3' and f'{add(1, 2)}' == '3'", GOOD),
    ("import json\nassert json.loads(f()) == {'a': 1}", "def f(): return '{\"a\": 1}'"),
    ("from answer import add\nassert add(1, 2) == 3", GOOD),
    ("import answer\nassert answer.add(1, 2) == 3", GOOD),
    ("def check(candidate):\n    assert candidate(1, 2) == 3\ncheck(add)", GOOD),
    ("if add(1, 2) != 3:\n    raise ValueError('wrong')", GOOD),
    ("import sys\nif add(1, 2) != 3: sys.exit(1)", GOOD),
    ("1 / (add(1, 2) == 3)", GOOD),
    ("for a in range(3):\n    assert add(a, 1) == a + 1", GOOD),
    ("assert eval('add(1, 2)') == 3", GOOD),
    ("assert all(add(a, 1) == a + 1 for a in range(3))", GOOD),
    ("try:\n    add(1, '2')\nexcept TypeError:\n    pass\nelse:\n    assert False", GOOD),
    (
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
        "        self.assertEqual(add(1, 2), 3)\n"
        "result = unittest.TestResult()\nunittest.defaultTestLoader.loadTestsFromTestCase(T)"
        ".run(result)\nassert result.wasSuccessful()",
        GOOD,
    ),
    (
        "s = Stack()\ns.push(1)\nassert s.pop() == 1\nassert len(s) == 0",
        "class Stack(list):\n    push = list.append",
    ),
    (
        "with Clock() as c:\n    pass\nassert c.ended",
        "class Clock:\n    ended = False\n"
        "    def __enter__(self): return self\n    def __exit__(self, *a): self.ended = True",
    ),
    (
        "class Child(Base):\n    pass\nassert Child().hello() == 'hi'",
        "class Base:\n    def hello(self): return 'hi'",
    ),
    ("import asyncio\nassert asyncio.run(f()) == 1", "async def f(): return 1"),
    (
        "import io, contextlib\nout = io.StringIO()\nwith contextlib.redirect_stdout(out):\n"
        "    hello()\nassert out.getvalue() == 'hi\\n'",
        "def hello(): print('hi')",
    ),
    ("assert list(f()) == []", "def f(): return ()"),
    ("a, b = f()\nassert a is None and b is None", "def f(): return None, None"),
    (
        "x = f()\nx.value = 3\nassert x.doubled() == 6",
        "class f:\n    value = 0\n    def doubled(self): return 2 * self.value",
    ),
    ("import numpy as np\nnp.testing.assert_allclose(f(np.ones(2)), 2)", "def f(x): return 2 * x"),
]


@pytest.fixture(scope="module")
def pool() -> Iterator[VerifierPool]:
    with VerifierPool({"t": CODE}, workers=2, seconds=10.0) as pool:
        yield pool


def ask(tests: str, program: str) -> tuple[Prompt, str]:
    return Prompt("t/0", "t", "?", tests), f"```python\n{program}\n```"


def test_tests_that_check_nothing_pay_nobody(pool: VerifierPool) -> None:
    for program in (GOOD, "raise ValueError"):
        found = pool.verify([ask(tests, program) for tests in SILENT])
        outcomes = dict(zip(SILENT, (verdict.outcome for verdict in found), strict=True))
        assert outcomes == dict.fromkeys(SILENT, Outcome.NOT_VERIFIABLE)


def test_tests_that_check_anything_are_used(pool: VerifierPool) -> None:
    right = pool.verify([ask(*pair) for pair in SPEAKING])
    wrong = pool.verify([ask(tests, "raise ValueError") for tests, _ in SPEAKING])
    for (tests, _), good, bad in zip(SPEAKING, right, wrong, strict=True):
        assert (tests, good.outcome) == (tests, Outcome.RIGHT)
        assert (tests, bad.outcome) == (tests, Outcome.WRONG)


CHECK = "METADATA = {}\n\ndef check(candidate):\n    assert candidate(1, 2) == 3\n"


@pytest.mark.parametrize(
    ("gold", "metadata", "program", "outcome"),
    [
        (CHECK, {"entry_point": "add"}, GOOD, Outcome.RIGHT),
        (CHECK, {"entry_point": "add"}, "def add(a, b): return 4", Outcome.WRONG),
        (CHECK, {"entry_point": "add"}, "def plus(a, b): return a + b", Outcome.WRONG),
        (CHECK, {"entry_point": "add; 1"}, GOOD, Outcome.NOT_VERIFIABLE),
        (CHECK, {"entry_point": 3}, GOOD, Outcome.NOT_VERIFIABLE),
        (CHECK, {}, GOOD, Outcome.NOT_VERIFIABLE),
        (f"{CHECK}\ncheck(add)", {"entry_point": "other"}, GOOD, Outcome.RIGHT),
        ("assert add(1, 2) == 3", {"entry_point": "add"}, GOOD, Outcome.RIGHT),
    ],
)
def test_check_is_called_with_the_entry_point(
    gold: str, metadata: dict[str, object], program: str, outcome: Outcome
) -> None:
    prompt = Prompt("t/0", "t", "?", gold, metadata=metadata)
    assert CODE(prompt, f"```python\n{program}\n```").outcome is outcome


@pytest.mark.parametrize("tests", [tests for tests, _ in SPEAKING if "!=" in tests])
def test_hopeless_programs_are_python(tests: str) -> None:
    for program in hopeless_programs(tests):
        ast.parse(program)


def test_a_killed_process_is_a_failure() -> None:
    assert can_fail([])
    assert can_fail(["failed"])
    assert not can_fail(["failed", "passed", "passed", "failed"])
    assert can_fail(["failed", "passed", "passed", "asserted"])
    assert not can_fail(["passed", "failed"])


def test_wrong_responses_show_what_tests_let_through() -> None:
    def passing(tests: str) -> list[str]:
        prompt = Prompt("t/0", "t", "?", tests)
        found = CODE.wrong_responses(prompt)
        return [what for what, text in found.items() if CODE(prompt, text).outcome is Outcome.RIGHT]

    assert passing("assert add(1, 2) == 3\nassert add(2, 2) == 4") == []
    assert passing("assert is_even(2)") == ["returns True", "returns its first argument"]
    assert passing("assert f(3) == 3") == ["returns its first argument"]
    assert passing("assert count([]) == 0") == ["returns 0"]
    assert CODE.wrong_responses(Prompt("t/0", "t", "?", "assert (")) == {}
    total = Total((CODE,), (1.0,))
    prompt = Prompt("t/0", "t", "?", "assert f(3) == 3")
    assert total.wrong_responses(prompt) == CODE.wrong_responses(prompt)
    assert set(plausible_programs("assert 1 == 2")) == {"defines nothing"}


@pytest.mark.parametrize(
    ("gold", "reason"),
    [
        ("", "there are no tests"),
        ("assert (", "the tests are not Python"),
        (CHECK, "they define check, which nothing calls"),
        ("class T:\n    def test(self): assert False", "the class T, which nothing runs"),
        ("if __name__ == '__main__':\n    assert False", "they run below `if __name__"),
        ('{"inputs": [1], "outputs": [null]}', "they hold no statement that could fail"),
        ("print(add(1, 2))", "wrong programs pass them as well"),
    ],
)
def test_the_reason_is_told(gold: str, reason: str) -> None:
    prompt = Prompt("t/0", "t", "?", gold)
    assert reason in str(CODE.why_not_verifiable(prompt))
    assert reason in str(Total((CODE,), (1.0,)).why_not_verifiable(prompt))

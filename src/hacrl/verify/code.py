"""Python answers, run together with their tests in a separate process.

The answer is the last fenced block that is marked as Python, else the last one that is not marked
at all, else the whole response. A block that is not closed is none: the response was cut. Only
what follows the reasoning is read.

The reference answer is Python code. It runs after the answer, in the same module (whose `__name__`
is `answer`), and raises where the answer is wrong; what it raises nothing on is right. Tests that
raise nothing on wrong programs either are not verifiable: they would reward anything.

A reference answer that defines `check(candidate)`, as HumanEval's do, is called with the function
that the problem's metadata name as `entry_point`.
"""

from __future__ import annotations

import json
import re
import secrets
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, NamedTuple

from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify.base import Case, Verifier
from hacrl.verify.confine import Ended, Limits, base_environment, run_confined
from hacrl.verify.extract import after_reasoning
from hacrl.verify.wrong import can_fail, hopeless_programs, plausible_programs, runs_nothing

__all__ = ["Code", "extract_code"]

_FENCE = re.compile(r"^[ \t]{0,12}(`{3,})[ \t]*([A-Za-z0-9_+.-]*)[^`\n]*$")
_PYTHON = re.compile(r"(?:python|py)[0-9.]*", re.IGNORECASE)
_OUTCOMES = {
    "passed": Outcome.RIGHT,
    "asserted": Outcome.WRONG,
    "failed": Outcome.WRONG,
    "started": Outcome.WRONG,  # it ended without a word: killed, or left by itself
    "tests": Outcome.NOT_VERIFIABLE,
}
_CHECK = re.compile(r"^def check\(", re.MULTILINE)
_CHECKED = re.compile(r"^check\(", re.MULTILINE)
_NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class _Program(NamedTuple):
    tests: str
    answer: str
    fenced: bool


@dataclass(frozen=True, slots=True)
class Code(Verifier):
    """Right if the tests pass.

    Args:
        seconds: limit of the running time, in processor time; see `TimeLimit`. It begins when
            Python has started.
        memory: hard limit of the address space in bytes.
        correct, wrong: rewards.
    """

    slow: ClassVar[bool] = True

    seconds: float = 5.0
    memory: int = 2 << 30
    correct: float = 1.0
    wrong: float = 0.0

    @property
    def extra_seconds(self) -> float:
        """Time for the programs that are tried once on the tests."""
        return self.seconds

    def screen(self, prompt: Prompt, response: str) -> Verdict | Case:
        """Decides empty responses, and prompts without tests, which are not verifiable."""
        if not prompt.gold.strip():
            return self.verdict(Outcome.NOT_VERIFIABLE)
        answer, fenced = extract_code(response)
        tests = _called(prompt)
        return _Program(tests, answer, fenced) if answer else self.verdict(Outcome.NO_ANSWER)

    def judge(self, case: Case) -> Verdict:
        """Starts Python; once more for tests that were not seen before.

        Raises:
            RuntimeError: Python did not start.
        """
        assert isinstance(case, _Program)
        limits = Limits(self.seconds, self.memory)
        if not _can_fail(case.tests, limits):
            return self.verdict(Outcome.NOT_VERIFIABLE)
        ended, (word, *_) = _run([case.answer], case.tests, limits)
        if word == "started" and ended.code is None:
            return self.verdict(Outcome.TIMEOUT, case.answer)
        if word == "syntax":
            outcome = Outcome.WRONG if case.fenced else Outcome.NO_ANSWER
        else:
            outcome = _OUTCOMES[word]
        return self.verdict(outcome, case.answer if outcome is not Outcome.NO_ANSWER else None)

    def wrong_responses(self, prompt: Prompt) -> dict[str, str]:
        """Programs that return something simple whatever they are asked, and one that defines
        nothing."""
        try:
            programs = plausible_programs(_called(prompt))
        except _NOT_PYTHON:
            return {}
        return {label: f"```python\n{text}```" for label, text in programs.items()}

    def why_not_verifiable(self, prompt: Prompt) -> str:
        """What is wrong with tests that are not verifiable."""
        if not prompt.gold.strip():
            return "there are no tests"
        try:
            reason = runs_nothing(_called(prompt))
        except _NOT_PYTHON as error:
            return f"the tests are not Python ({error})"
        return f"the tests check nothing: {reason or 'wrong programs pass them as well'}"


def _called(prompt: Prompt) -> str:
    """The tests of a prompt, with the call that they lack if its metadata allow it."""
    name = prompt.metadata.get("entry_point")
    if not isinstance(name, str) or not name.isidentifier():
        return prompt.gold
    if not _CHECK.search(prompt.gold) or _CHECKED.search(prompt.gold):
        return prompt.gold
    return f"{prompt.gold}\n\ncheck({name})\n"


@lru_cache(maxsize=4096)
def _can_fail(tests: str, limits: Limits) -> bool:
    try:
        if runs_nothing(tests) is not None:
            return False
        programs = hopeless_programs(tests)
    except _NOT_PYTHON:
        return False
    _, words = _run(programs, tests, limits)
    return words[0] != "tests" and can_fail([word for word in words if word != "started"])


def _run(answers: Sequence[str], tests: str, limits: Limits) -> tuple[Ended, list[str]]:
    """How the runner ended, and its words on each answer; `started` if it ended before the first.

    Raises:
        RuntimeError: Python did not start.
    """
    secret = secrets.token_hex(16)
    text = json.dumps({"answers": list(answers), "tests": tests, "secret": secret})
    runner = str(Path(__file__).with_name("program.py"))
    with tempfile.TemporaryDirectory(prefix="hacrl-") as folder:
        ended = run_confined(
            [sys.executable, "-I", runner],
            text,
            limits,
            environment=base_environment(folder) | _ONE_THREAD | {"HOME": folder},
            folder=folder,
            announced=True,
        )
    words = [word for line in ended.output.splitlines() if (word := _said(line, secret))]
    if not ended.begun or not words:
        raise RuntimeError(f"Python did not start: {ended.errors.strip()[-300:]}")
    return ended, words[1:] or words


def extract_code(response: str) -> tuple[str, bool]:
    """The code of a response, empty if there is none, and whether it was in a fenced block."""
    visible = after_reasoning(response) or ""
    marked = plain = None
    fence, language, block = "", "", list[str]()
    for line in visible.splitlines():
        match = _FENCE.match(line)
        if not fence and match:
            fence, language, block = match[1], match[2], []
        elif fence and match and len(match[1]) >= len(fence) and not match[2]:
            text = textwrap.dedent("\n".join(block))
            if _PYTHON.fullmatch(language):
                marked = text
            elif not language:
                plain = text
            fence = ""
        else:
            block.append(line)
    code = marked if marked is not None else plain
    return (visible, False) if code is None else (code, True)


def _said(line: str, secret: str) -> str | None:
    start, _, word = line.partition(" ")
    return word if start == secret else None

"""Python answers, run together with their tests in a process of their own.

The answer is the last fenced block that is marked as Python, else the last one that is not marked
at all, else the whole response. A block that is not closed is none: the response was cut. Only
what follows the reasoning is read.

The gold is Python code. It runs after the answer, in the same module (whose `__name__` is
`answer`), and raises where the answer is wrong; what it raises nothing on is right.
"""

from __future__ import annotations

import json
import re
import secrets
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify.base import Case, Verifier
from hacrl.verify.confine import Limits, base_environment, run_confined
from hacrl.verify.extract import after_reasoning

__all__ = ["Code", "extract_code"]

_FENCE = re.compile(r"^[ \t]{0,12}(`{3,})[ \t]*([A-Za-z0-9_+.-]*)[^`\n]*$")
_PYTHON = re.compile(r"(?:python|py)[0-9.]*", re.IGNORECASE)
_OUTCOMES = {
    "passed": Outcome.RIGHT,
    "failed": Outcome.WRONG,
    "started": Outcome.WRONG,  # it ended without a word: killed, or left by itself
    "tests": Outcome.NOT_VERIFIABLE,
}
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class _Program(NamedTuple):
    tests: str
    answer: str
    fenced: bool


@dataclass(frozen=True, slots=True)
class Code(Verifier):
    """Right if the tests pass.

    Args:
        seconds: hard limit of the running time, the start of Python included.
        memory: hard limit of the address space in bytes.
        correct, wrong: rewards.
    """

    slow: ClassVar[bool] = True

    seconds: float = 5.0
    memory: int = 2 << 30
    correct: float = 1.0
    wrong: float = 0.0

    def screen(self, prompt: Prompt, response: str) -> Verdict | Case:
        """Decides empty responses, and prompts without tests, which are not verifiable."""
        if not prompt.gold.strip():
            return self.verdict(Outcome.NOT_VERIFIABLE)
        answer, fenced = extract_code(response)
        return _Program(prompt.gold, answer, fenced) if answer else self.verdict(Outcome.NO_ANSWER)

    def judge(self, case: Case) -> Verdict:
        """Starts Python.

        Raises:
            RuntimeError: Python did not start.
        """
        assert isinstance(case, _Program)
        secret = secrets.token_hex(16)
        text = json.dumps({"answer": case.answer, "tests": case.tests, "secret": secret})
        runner = str(Path(__file__).with_name("program.py"))
        with tempfile.TemporaryDirectory(prefix="hacrl-") as folder:
            ended = run_confined(
                [sys.executable, "-I", runner],
                text,
                Limits(self.seconds, self.memory),
                environment=base_environment(folder) | _ONE_THREAD | {"HOME": folder},
                folder=folder,
            )
        words = [word for line in ended.output.splitlines() if (word := _said(line, secret))]
        if not words:
            raise RuntimeError(f"Python did not start: {ended.errors.strip()[-300:]}")
        if ended.code is None:
            return self.verdict(Outcome.TIMEOUT, case.answer)
        if words[-1] == "syntax":
            outcome = Outcome.WRONG if case.fenced else Outcome.NO_ANSWER
        else:
            outcome = _OUTCOMES[words[-1]]
        return self.verdict(outcome, case.answer if outcome is not Outcome.NO_ANSWER else None)


def extract_code(response: str) -> tuple[str, bool]:
    """The code of a response, empty if there is none, and whether it was in a fenced block."""
    visible = after_reasoning(response) or ""
    marked = plain = None
    fence, language, block = "", "", list[str]()
    for line in visible.splitlines():
        found = _FENCE.match(line)
        if not fence and found:
            fence, language, block = found[1], found[2], []
        elif fence and found and len(found[1]) >= len(fence) and not found[2]:
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

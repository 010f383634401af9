"""An external program as a verifier, such as a proof checker or a compiler.

It reads the response from its standard input and finds the problem in the JSON file that
`HACRL_PROMPT` names: `id`, `task`, `text`, `system`, `gold` and `metadata`. It runs in the folder
in which the run was started; `TMPDIR` is a fresh folder that is removed afterwards.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from hacrl.errors import UserError
from hacrl.processes import describe_exit
from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify.base import Case, Verifier
from hacrl.verify.confine import Ended, Limits, base_environment, run_confined

__all__ = ["Command"]


class _Call(NamedTuple):
    prompt: str
    response: str


@dataclass(frozen=True, slots=True)
class Command(Verifier):
    """Whatever an external program says.

    Args:
        argv: program and arguments.
        judged_by: `exit_code`: 0 is right, 1 is wrong, all else a scorer error. `score`: the last
            line of the output is the reward, and an exit code other than 0 a scorer error.
        threshold: scores from here on are right.
        lowest: a lower score is a scorer error.
        seconds: limit of the running time, in processor time; see `TimeLimit`.
        memory: hard limit of the address space in bytes.
        environment: variables that are passed on, besides a few harmless ones.
        correct, wrong: rewards.
    """

    slow: ClassVar[bool] = True

    argv: tuple[str, ...]
    judged_by: Literal["exit_code", "score"] = "exit_code"
    threshold: float = 1.0
    lowest: float = 0.0
    seconds: float = 5.0
    memory: int = 2 << 30
    environment: tuple[str, ...] = ()
    correct: float = 1.0
    wrong: float = 0.0

    def screen(self, prompt: Prompt, response: str) -> Case:
        """Decides nothing."""
        # Metadata may hold dates and the like, which become text.
        return _Call(json.dumps(asdict(prompt), default=str), response)

    def judge(self, case: Case) -> Verdict:
        """Runs the program.

        Raises:
            RuntimeError: it ended in no way that means a verdict.
        """
        assert isinstance(case, _Call)
        with tempfile.TemporaryDirectory(prefix="hacrl-") as folder:
            path = Path(folder, "prompt.json")
            path.write_text(case.prompt, encoding="utf-8")
            ended = run_confined(
                self.argv,
                case.response,
                Limits(self.seconds, self.memory),
                environment=base_environment(folder, self.environment)
                | {"HACRL_PROMPT": str(path)},
            )
        if not ended.begun:
            raise RuntimeError(f"{self.argv[0]} could not be started in time")
        if ended.code is None:
            return self.verdict(Outcome.TIMEOUT)
        if self.judged_by == "score" and ended.code == 0:
            return self.scored(_score(ended), threshold=self.threshold, lowest=self.lowest)
        if self.judged_by == "exit_code" and ended.code in (0, 1):
            return self.verdict(Outcome.WRONG if ended.code else Outcome.RIGHT)
        raise RuntimeError(f"{self.argv[0]} exited with {_code(ended.code)}{_reason(ended)}")

    def check(self) -> None:
        """See whether the program can be found.

        Raises:
            UserError: it cannot.
        """
        if shutil.which(self.argv[0]) is None:
            raise UserError(f"program {self.argv[0]} is not found, or may not be run")


def _score(ended: Ended) -> float:
    lines = ended.output.split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    try:
        return float(last)
    except ValueError:
        raise RuntimeError(f"the last line of its output is no number: {last[:100]!r}") from None


def _code(code: int) -> str:
    return f"code {code}" if code <= 128 else f"code {code}: it {describe_exit(128 - code)}"


def _reason(ended: Ended) -> str:
    lines = ended.errors.strip().splitlines()
    return f": {lines[-1][-200:]}" if lines else ""

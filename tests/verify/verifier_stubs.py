"""A verifier that does what the response says, the bad things included; work for an actor."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify import Code, Math, Verifier, VerifierPool

judged = 0


class Odd:
    """Something that its receiver cannot read."""

    def __reduce__(self) -> tuple[object, ...]:
        return never, ()


def never() -> None:
    raise RuntimeError("never")


@dataclass(frozen=True)
class Hostile(Verifier):
    correct: float = 1.0
    wrong: float = 0.0

    def screen(self, prompt: Prompt, response: str) -> Verdict | tuple[str, str]:
        if response == "inline error":
            raise KeyError("inline")
        return prompt.gold, response

    def judge(self, case: tuple[str, str]) -> Verdict:
        global judged
        judged += 1
        gold, response = case
        match response.split():
            case ["die", code]:
                os._exit(int(code))
            case ["signal", number]:
                os.kill(os.getpid(), int(number))
                time.sleep(600)
        match response:
            case "count":
                return Verdict(1.0, Outcome.RIGHT, str(judged))
            case "abort":
                os.abort()
            case "quit":
                sys.exit()
            case "close":
                os.closerange(3, 100)
                time.sleep(600)
            case "odd":
                return Verdict(1.0, Outcome.RIGHT, Odd())  # type: ignore[arg-type]
            case "lambda":
                return Verdict(1.0, Outcome.RIGHT, lambda: 0)  # type: ignore[arg-type]
            case "start another":
                subprocess.run(["sleep", "600"], check=False)
            case "sleep":
                time.sleep(600)
            case "hold the GIL":
                _ = 7 ** (7**9)  # one call into C
            case "die":
                os._exit(3)
            case "exit":
                sys.exit(3)
            case "eat memory":
                _ = bytearray(8 << 30)
            case "raise":
                raise RuntimeError("on purpose")
            case "modules":
                loaded = [name for name in ("torch", "transformers", "ray") if name in sys.modules]
                return Verdict(1.0, Outcome.RIGHT, ",".join(loaded))
            case "pid":
                return Verdict(1.0, Outcome.RIGHT, str(os.getpid()))
            case "slow":
                time.sleep(0.05)
        return self.verdict(Outcome.RIGHT if gold == response else Outcome.WRONG, response)


@dataclass(frozen=True)
class Unstartable(Hostile):
    how: str = "exit 1"

    def prepare(self) -> None:
        match self.how.split():
            case ["exit", code]:
                os._exit(int(code))
            case ["kill"]:
                os.kill(os.getpid(), signal.SIGKILL)
            case ["raise"]:
                raise ModuleNotFoundError("No module named 'judge'")
            case ["sys.exit"]:
                sys.exit("no judge")
            case ["hang"]:
                time.sleep(600)
            case ["after", path] if os.path.exists(path):
                os._exit(1)


@dataclass(frozen=True)
class Unreadable(Hostile):
    """As if its module raised when a worker imports it."""

    def __reduce__(self) -> tuple[object, ...]:
        return _not_in_a_worker, ()


def _not_in_a_worker() -> Unreadable:
    raise RuntimeError("not in a worker")


def everything() -> list[Outcome]:
    """What a pool that is made here says of a few responses."""
    verifiers = {"math": Math(), "code": Code(seconds=0.3), "any": Hostile()}
    rows = [
        ("math", "1/3", r"\boxed{\frac{1}{3}}"),
        ("math", "1/3", r"\boxed{\frac{1}{4}}"),
        ("math", "1/3", "1/3"),
        ("code", "assert x == 1", "x = 1"),
        ("code", "assert x == 1", "x = 2"),
        ("code", "assert x == 1", "while True: pass"),
        ("any", "", "hold the GIL"),
    ]
    with VerifierPool(verifiers, seconds=0.5) as pool:
        found = pool.verify([(Prompt("t/0", task, "?", gold), text) for task, gold, text in rows])
    return [verdict.outcome for verdict in found]


def everything_twice() -> list[list[Outcome]]:
    """At the same time from the main thread and from another one."""
    with ThreadPoolExecutor(1) as thread:
        other = thread.submit(everything)
        return [everything(), other.result()]

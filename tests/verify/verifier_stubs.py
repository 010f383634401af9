"""A verifier that does what the response says, the bad things included."""

import os
import sys
import time
from dataclasses import dataclass

from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify import Verifier


@dataclass(frozen=True)
class Hostile(Verifier):
    correct: float = 1.0
    wrong: float = 0.0

    def screen(self, prompt: Prompt, response: str) -> Verdict | tuple[str, str]:
        if response == "inline error":
            raise KeyError("inline")
        return prompt.gold, response

    def judge(self, case: tuple[str, str]) -> Verdict:
        gold, response = case
        match response:
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
    def prepare(self) -> None:
        os._exit(1)

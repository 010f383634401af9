"""Runs a Python answer and its tests. Run as a script by `code`; imports nothing of ours.

Reads JSON from standard input: `answer` and `tests`, both Python, and `secret`. Every line of its
output begins with the secret, so that an answer that prints or exits early does not pass:
`started`, then one of `passed`, `failed`, `syntax` (the answer is not Python) and `tests` (the
tests are not).
"""

import contextlib
import json
import os
import sys
import types

_FORBIDDEN = (
    *("socket.connect", "socket.bind", "socket.send", "socket.get"),  # not socket: asyncio has one
    *("subprocess.", "os.system", "os.fork", "os.exec", "os.posix_spawn", "os.spawn", "os.kill"),
)


def main() -> None:
    case = json.load(sys.stdin)
    report = os.dup(1)

    def say(word: str) -> None:
        os.write(report, f"{case['secret']} {word}\n".encode())

    say("started")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    module = types.ModuleType("answer")
    sys.modules["answer"] = module  # dataclasses and pickle look there
    try:
        tests = _compiled(case["tests"], "tests")
    except Exception:  # noqa: BLE001 - the compiler raises several kinds
        return say("tests")
    try:
        answer = _compiled(case["answer"], "answer")
    except Exception:  # noqa: BLE001
        return say("syntax")
    with contextlib.suppress(BaseException):
        sys.addaudithook(_refuse)
        exec(answer, module.__dict__)
        exec(tests, module.__dict__)
        return say("passed")
    return say("failed")


def _compiled(text: str, name: str) -> types.CodeType:
    return compile(text, f"<{name}>", "exec", dont_inherit=True)


def _refuse(event: str, arguments: object) -> None:
    if event.startswith(_FORBIDDEN):
        raise PermissionError(f"{event} is not allowed here")


if __name__ == "__main__":
    main()
    os._exit(0)  # threads that the answer has left behind would go on

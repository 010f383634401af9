"""Runs Python answers with their tests. Run as a script by `code`; imports nothing of ours.

Reads JSON from standard input: `answers`, `tests`, all Python, and `secret`. Every line of its
output begins with the secret, so that an answer that prints or exits early does not pass:
`started`, then for each answer one of `passed`, `asserted` (an assertion of the tests failed),
`failed`, `syntax` (the answer is not Python) and `tests` (the tests are not).
"""

import json
import os
import sys
import time
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
    begun = int(os.environ.pop("HACRL_BEGUN"))
    os.write(begun, str(time.process_time()).encode())
    os.close(begun)
    for answer in case["answers"]:
        say(_run(answer, case["tests"]))


def _run(answer_text: str, tests_text: str) -> str:
    module = types.ModuleType("answer")
    sys.modules["answer"] = module  # dataclasses and pickle look there
    try:
        tests = _compiled(tests_text, "tests")
    except Exception:  # noqa: BLE001 - the compiler raises several kinds
        return "tests"
    try:
        answer = _compiled(answer_text, "answer")
    except Exception:  # noqa: BLE001
        return "syntax"
    ran = False
    try:
        sys.addaudithook(_refuse)
        exec(answer, module.__dict__)
        ran = True
        exec(tests, module.__dict__)
    except BaseException as error:  # noqa: BLE001 - whatever they raise means the same
        return "asserted" if ran and isinstance(error, AssertionError) else "failed"
    return "passed"


def _compiled(text: str, name: str) -> types.CodeType:
    return compile(text, f"<{name}>", "exec", dont_inherit=True)


def _refuse(event: str, arguments: object) -> None:
    if event.startswith(_FORBIDDEN):
        raise PermissionError(f"{event} is not allowed here")


if __name__ == "__main__":
    main()
    os._exit(0)  # threads that the answer has left behind would go on

"""Where Linux allows no namespaces, less is promised, but verdicts are the same."""

import subprocess
import sys
import time

import pytest

SCRIPT = """
import sys, time
from hacrl.records import Prompt
from hacrl.verify import Code, Command

prompt = Prompt("t/0", "t", "?", "assert x == 1")
code = Code(seconds=2.0)
for text in ("x = 1", "x = 2", "while True: pass", "import os; os._exit(0)", "bytearray(4 << 30)",
             "import socket; socket.create_connection(('127.0.0.1', 80))", "I cannot say."):
    print(code(prompt, text).outcome)
child = "import subprocess; subprocess.Popen(['sleep', '2.125']); import time; time.sleep(60)"
print(Command((sys.executable, "-c", child), seconds=1.0)(prompt, "").outcome)
"""


def without_namespaces(*argv: str) -> subprocess.CompletedProcess[str]:
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    return subprocess.run(
        ["unshare", "-Ur", "sh", "-c", forbid, "sh", *argv],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(autouse=True)
def _can_forbid_them() -> None:
    if sys.platform != "linux" or without_namespaces("true").returncode:
        pytest.skip("this machine does not allow namespaces")
    assert without_namespaces("unshare", "-U", "true").returncode


def test_verdicts_are_the_same() -> None:
    found = without_namespaces(sys.executable, "-c", SCRIPT)
    assert found.stdout.split() == (
        ["right", "wrong", "timeout", "wrong", "wrong", "wrong", "no_answer", "timeout"]
    ), found.stderr
    time.sleep(0.2)
    left = subprocess.run(["pgrep", "-f", "^sleep 2.125"], capture_output=True, check=False)
    assert left.stdout == b""

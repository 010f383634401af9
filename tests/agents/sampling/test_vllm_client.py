"""Engines that fail, hang, die or lose their parent. None of it needs vLLM itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hacrl.agents.sampling.vllm.client import VllmClient
from hacrl.agents.sampling.vllm.messages import Request
from hacrl.errors import UserError

REQUEST = Request([1], max_new_tokens=1, temperature=1.0, seed=0, stop_ids=())


@pytest.fixture
def client() -> Iterator[VllmClient]:
    client = VllmClient("kim", 30.0, {})
    yield client
    client.close()


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def gone(client: VllmClient) -> bool:
    return not alive(client.pid) and not client.folder.exists()


def test_what_goes_wrong_in_an_engine_is_said_and_ends_it(client: VllmClient) -> None:
    with pytest.raises(UserError, match="agent kim: vLLM engine: AttributeError: 'NoneType'"):
        client.load()  # there is no engine yet
    assert gone(client)


def test_a_killed_engine_is_reported_with_the_likely_cause(client: VllmClient) -> None:
    os.kill(client.pid, signal.SIGKILL)
    with pytest.raises(UserError, match=r"agent kim: .*memory; lower agents\.kim\.sampler\.cpu_c"):
        client.draw([REQUEST])
    assert gone(client)


def test_an_engine_that_ends_says_its_last_words(client: VllmClient) -> None:
    log = client.folder / "engine.log"
    log.write_text("something\nout of luck\n")
    os.kill(client.pid, signal.SIGTERM)
    with pytest.raises(UserError, match=r"ended with code -15; its last words: out of luck"):
        client.draw([REQUEST])
    assert gone(client)


def test_an_engine_that_hangs_is_ended_at_the_limit() -> None:
    client = VllmClient("kim", 2.0, {})
    os.kill(client.pid, signal.SIGSTOP)
    begun = time.monotonic()
    with pytest.raises(UserError, match=r"agent kim: .* for 2 s .* raise agents\.kim\.sampler\.se"):
        client.draw([REQUEST])
    assert time.monotonic() - begun < 20, "of the 30 that another client has"
    assert gone(client)


def test_an_engine_ends_when_nobody_needs_it_any_more() -> None:
    client = VllmClient("kim", 30.0, {})
    pid, folder = client.pid, client.folder
    assert alive(pid)
    del client
    assert not alive(pid)
    assert not folder.exists()


@pytest.mark.parametrize("held", [False, True])
def test_an_engine_does_not_outlive_a_killed_parent(held: bool) -> None:
    """Not even if others hold the killed one's files, as a forked worker of it would."""
    program = (
        "import os, signal, time\n"
        "from hacrl.agents.sampling.vllm.client import VllmClient\n"
        "client = VllmClient('kim', 30.0, {})\n"
        f"holder = os.fork() if {held} else None\n"
        "if holder == 0:\n"
        "    os.closerange(1, 3)\n"  # or this test waits for it
        "    time.sleep(600)\n"
        "    os._exit(0)\n"
        "print(client.pid, client.folder, holder or '', flush=True)\n"
        "time.sleep(3)\n"  # long enough for the engine's process to listen
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    parent = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert parent.returncode == -signal.SIGKILL, parent.stderr
    pid, folder, *holders = parent.stdout.split()
    deadline = time.monotonic() + 60
    while (alive(int(pid)) or Path(folder).exists()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [alive(int(holder)) for holder in holders] == [True] * held
    for holder in holders:
        os.kill(int(holder), signal.SIGKILL)
    assert not alive(int(pid))
    assert not Path(folder).exists()

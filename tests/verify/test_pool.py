import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from verifier_stubs import Hostile, Unstartable

from hacrl.errors import UserError
from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify import Exact, Math, VerifierPool

GOOD = [(Prompt(f"t/{i}", "t", "?", str(i)), str(i)) for i in range(20)]
RIGHT = [Verdict(1.0, Outcome.RIGHT, str(i)) for i in range(20)]


def ask(what: str) -> tuple[Prompt, str]:
    return Prompt("t/x", "t", "?", "gold"), what


@pytest.fixture(scope="module")
def pool() -> Iterator[VerifierPool]:
    with VerifierPool({"t": Hostile(wrong=-1.0)}, workers=2, seconds=1.0) as pool:
        yield pool


def test_order_is_kept(pool: VerifierPool) -> None:
    assert pool.verify(GOOD) == RIGHT
    assert pool.verify([]) == []


@pytest.mark.parametrize("what", ["sleep", "hold the GIL"])
def test_stuck_row_times_out_alone(pool: VerifierPool, what: str) -> None:
    pool.verify(GOOD)
    start = time.monotonic()
    found = pool.verify([*GOOD[:9], ask(what), *GOOD[9:]])
    assert time.monotonic() - start < 8
    assert found.pop(9) == Verdict(-1.0, Outcome.TIMEOUT)
    assert found == RIGHT
    assert pool.verify(GOOD) == RIGHT


@pytest.mark.parametrize("what", ["die", "exit", "eat memory", "raise", "inline error"])
def test_failing_row_is_unscored_alone(pool: VerifierPool, what: str) -> None:
    found = pool.verify([*GOOD[:9], ask(what), *GOOD[9:]])
    assert found.pop(9) == Verdict(None, Outcome.SCORER_ERROR)
    assert found == RIGHT
    assert pool.verify(GOOD) == RIGHT


def test_slow_rows_are_not_stuck(pool: VerifierPool) -> None:
    rows = [(Prompt("t/s", "t", "?", str(i)), "slow") for i in range(30)]  # 1.5 s in all
    assert {v.outcome for v in pool.verify(rows)} == {Outcome.WRONG}


def test_workers_are_reused_and_hold_no_model_library(pool: VerifierPool) -> None:
    pids = {pool.verify([ask("pid")])[0].answer for _ in range(5)}
    assert len(pids) <= 2
    assert pool.verify([ask("modules")])[0].answer == ""


def test_equal_cases_are_judged_once() -> None:
    with VerifierPool({"t": Hostile()}, seconds=1.0) as pool:
        start = time.monotonic()
        assert len(set(pool.verify([ask("sleep")] * 50))) == 1
        assert time.monotonic() - start < 15


def test_first_error_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with VerifierPool({"t": Hostile()}) as pool, caplog.at_level(logging.WARNING, "hacrl.verify"):
        pool.verify([ask("inline error"), ask("raise"), ask("raise")])
        pool.verify([ask("raise")])
    assert [record.getMessage() for record in caplog.records] == [
        "the verifier of task t failed: KeyError: 'inline' "
        "(later failures are counted but not shown)"
    ]


def test_same_verdicts_from_a_thread() -> None:
    rows = [
        (Prompt("t/0", "t", "?", "1/3"), r"\boxed{\frac{1}{3}}"),
        (Prompt("t/1", "t", "?", "1/3"), r"\boxed{\frac{1}{4}}"),
    ]
    found: list[list[Verdict]] = []
    with VerifierPool({"t": Math()}) as pool:
        threads = [
            threading.Thread(target=lambda: found.append(pool.verify(rows))) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [pool.verify(rows)] * 3
    assert [v.outcome for v in found[0]] == [Outcome.RIGHT, Outcome.WRONG]


def test_no_worker_starts_for_what_is_decided_inline(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = VerifierPool({"t": Exact()})
    monkeypatch.setattr(pool, "_started", lambda: pytest.fail("a worker was started"))
    assert pool.verify([(Prompt("t/0", "t", "?", "a"), "#### a")])[0].outcome is Outcome.RIGHT


def test_closing_ends_workers_and_the_pool_can_be_used_again() -> None:
    pool = VerifierPool({"t": Hostile()})
    first = pool.verify([ask("pid")])
    pool.close()
    pool.close()
    assert pool.verify([ask("pid")]) != first
    pool.close()


def test_workers_that_do_not_start() -> None:
    with VerifierPool({"t": Unstartable()}) as pool, pytest.raises(UserError, match="do not start"):
        pool.verify([ask("pid")])


SCRIPT = r"""
from hacrl.records import Prompt
from hacrl.verify import Math, VerifierPool

if __name__ == "__main__":
    with VerifierPool({"t": Math()}, workers=2, seconds=60) as pool:
        pool.verify([(Prompt("t/0", "t", "?", "x+1"), r"\boxed{x+2}")])
        print("started", flush=True)
        pool.verify([(Prompt("t/0", "t", "?", "x+1"), r"\boxed{100000000!}")])
"""


def test_interrupt_ends_everything_with_one_traceback(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the group
    # Returns when nobody holds the error stream any more, so no worker is left either.
    _, errors = process.communicate(timeout=20)
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from verifier_stubs import Hostile, Unstartable, everything, everything_in_threads

from hacrl.errors import UserError
from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify import (
    Choice,
    Exact,
    Function,
    Math,
    ReasoningGym,
    Total,
    Verifier,
    VerifierPool,
)

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


def test_errors_beyond_the_limit_end_the_run() -> None:
    verifiers = {"t": Hostile(), "other": Exact()}
    good = [(Prompt("other/0", "other", "?", "a"), "#### a")] * 20
    with VerifierPool(verifiers, seconds=5.0, max_errors=0.5) as pool:
        half = pool.verify([*GOOD[:2], ask("raise"), ask("inline error"), *good])
        assert [v.outcome for v in half[:4]] == [Outcome.RIGHT] * 2 + [Outcome.SCORER_ERROR] * 2
        assert pool.first_errors == {"t": "KeyError: 'inline'"}
        with pytest.raises(UserError) as caught:
            pool.verify([*GOOD[:2], *[ask("raise")] * 3, *good])
    assert str(caught.value) == (
        "tasks.t.verifier: failed on 3 of 5 responses, first with: KeyError: 'inline'\n"
        "mend what it complains about, or raise verification.max_errors, which is 0.5"
    )


def test_no_error_may_be_allowed() -> None:
    with VerifierPool({"t": Hostile()}, max_errors=0.0) as pool:
        assert pool.verify(GOOD) == RIGHT
        with pytest.raises(UserError, match="failed on 1 of 21 responses"):
            pool.verify([*GOOD, ask("inline error")])


def test_a_response_that_is_too_long_is_not_read() -> None:
    pool = VerifierPool({"t": Exact(wrong=-1.0)}, max_chars=6)
    prompt = Prompt("t/0", "t", "?", "a")
    assert pool.verify([(prompt, "#### a"), (prompt, " #### a")]) == [
        Verdict(1.0, Outcome.RIGHT, "a"),
        Verdict(-1.0, Outcome.NO_ANSWER),
    ]


def test_a_million_characters_are_read_in_time() -> None:
    pool = VerifierPool({"t": Math(last_number=True), "c": Choice(), "e": Exact()})
    start = time.process_time()
    for text in ("\\boxed{", "1,", "answer is ", "é"):
        long = text * (1_000_000 // len(text))
        rows = [(Prompt("t/0", task, "?", "B"), long) for task in pool.verifiers]
        assert {v.outcome for v in pool.verify(rows)} <= {Outcome.NO_ANSWER, Outcome.WRONG}
    assert time.process_time() - start < 12


ANY: dict[str, Verifier] = {
    "math": Math(last_number=True),
    "exact": Exact(marker=None),
    "choice": Choice(),
    "function": Function("user_rewards:exact"),
    "batch": Function("user_rewards:together_slowly", size=8),
    "gym": ReasoningGym("chain_sum"),
    "sum": Total((Choice(), Math(), Function("user_rewards:exact")), (1.0, 0.5, 0.5)),
}


@pytest.fixture(scope="module")
def any_pool() -> Iterator[VerifierPool]:
    with VerifierPool(ANY, seconds=2.0) as pool:
        yield pool


@settings(max_examples=15, deadline=None)
@given(st.lists(st.text() | st.text(alphabet="\\{}#[]()0123456789ABC^!_ \n"), max_size=4))
def test_any_response_has_an_outcome(any_pool: VerifierPool, texts: list[str]) -> None:
    bodies = [text for body in texts for text in (body, f"\\boxed{{{body}}}")]
    rows = [(Prompt("t/0", task, "?", "B"), text) for task in ANY for text in bodies]
    for (prompt, _), verdict in zip(rows, any_pool.verify(rows), strict=True):
        assert verdict.outcome is not Outcome.SCORER_ERROR
        assert (verdict.reward is None) == (verdict.outcome is Outcome.NOT_VERIFIABLE)
        assert verdict.reward is None or 0.0 <= verdict.reward <= ANY[prompt.task].correct


def test_same_verdicts_from_threads_and_actors() -> None:
    here = everything()
    assert here[0] == [Outcome.RIGHT, Outcome.WRONG, Outcome.NO_ANSWER, Outcome.TIMEOUT]
    with ThreadPoolExecutor(3) as threads:
        assert [f.result() for f in [threads.submit(everything) for _ in range(2)]] == [here] * 2
    # Ray's actors are processes like this one: not forked, not daemons.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as actor:
        assert actor.submit(everything).result() == here
        # Threads of an actor, as with max_concurrency > 1.
        assert actor.submit(everything_in_threads).result() == [here] * 2


def test_one_pool_serves_several_threads() -> None:
    rows = [
        (Prompt("t/0", "t", "?", "1/3"), r"\boxed{\frac{1}{3}}"),
        (Prompt("t/1", "t", "?", "1/3"), r"\boxed{\frac{1}{4}}"),
    ]
    with VerifierPool({"t": Math()}) as pool, ThreadPoolExecutor(3) as threads:
        found = list(threads.map(pool.verify, [rows] * 3))
        assert found == [pool.verify(rows)] * 3
    assert [v.outcome for v in found[0]] == [Outcome.RIGHT, Outcome.WRONG]


def test_a_daemon_is_told_that_it_cannot_have_workers() -> None:
    with (
        multiprocessing.get_context("spawn").Pool(1) as daemons,
        pytest.raises(UserError, match="a daemon process may not have"),
    ):
        daemons.apply(everything)


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
import signal

from hacrl.records import Prompt
from hacrl.verify import Math, VerifierPool

if __name__ == "__main__":
    # A shell starts what is in its background with interrupts ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
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

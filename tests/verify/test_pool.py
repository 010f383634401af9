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
from verifier_stubs import (
    Hostile,
    Unreadable,
    Unstartable,
    everything,
    everything_twice,
)

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
from hacrl.verify.worker import Call, TaskCase
from hacrl.verify.workers import Workers

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
    found = pool.verify([*GOOD[:9], ask(what), *GOOD[9:]])
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
    with VerifierPool({"t": Hostile()}) as pool:
        # The answer is the number of judgements in the worker so far.
        assert {v.answer for v in pool.verify([ask("count")] * 50)} == {"1"}
        assert {v.answer for v in pool.verify([ask("count")] * 50)} == {"2"}


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
        "fix that, or raise verification.max_errors, which is 0.5"
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
    expected = [
        *(Outcome.RIGHT, Outcome.WRONG, Outcome.NO_ANSWER),
        *(Outcome.RIGHT, Outcome.WRONG, Outcome.TIMEOUT),
        Outcome.TIMEOUT,
    ]
    assert everything_twice() == [expected] * 2
    # Ray's actors are processes like this one: not forked, not daemons. They may have threads, as
    # with max_concurrency > 1.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as actor:
        assert actor.submit(everything_twice).result() == [expected] * 2


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
    monkeypatch.setattr(
        "hacrl.verify.workers._Worker", lambda *_: pytest.fail("a worker was started")
    )
    assert pool.verify([(Prompt("t/0", "t", "?", "a"), "#### a")])[0].outcome is Outcome.RIGHT


def test_closing_ends_workers_and_the_pool_can_be_used_again() -> None:
    pool = VerifierPool({"t": Hostile()})
    first = pool.verify([ask("pid")])
    pool.close()
    pool.close()
    assert pool.verify([ask("pid")]) != first
    pool.close()


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("exit 0", "its worker process ended itself with exit code 0"),
        ("exit 1", "its worker process ended itself with exit code 1"),
        ("kill", "its worker process was killed (SIGKILL), most likely for lack of memory"),
        ("raise", "ModuleNotFoundError: No module named 'judge'"),
        ("sys.exit", "it called sys.exit('no judge')"),
        ("unreadable", "RuntimeError: not in a worker"),
    ],
)
def test_workers_that_do_not_start(how: str, reason: str) -> None:
    # So many that no pipe holds them all.
    pairs = [(Prompt(f"t/{i}", "t", "?", str(i)), str(i)) for i in range(3_000)]
    verifier = {"t": Unreadable() if how == "unreadable" else Unstartable(how=how)}
    with VerifierPool(verifier, workers=2) as pool, pytest.raises(UserError) as caught:
        pool.verify(pairs)
    first, remedy = str(caught.value).splitlines()
    assert first.startswith(f"the verifier's worker processes do not start: {reason}")
    assert "__main__" in remedy


def test_a_start_that_never_ends_is_given_up() -> None:
    workers = Workers({"t": Unstartable(how="hang")}, 1, 2 << 30, start_seconds=0.5)
    with pytest.raises(UserError, match=r"they are not ready after 0\.5 s"):
        workers.run([Call((TaskCase("t", ("a", "a")),), 1.0)])
    workers.close()


def test_workers_that_start_no_more_are_given_up(tmp_path: Path) -> None:
    mark = tmp_path / "broken"
    with VerifierPool({"t": Unstartable(how=f"after {mark}")}) as pool:
        assert pool.verify(GOOD) == RIGHT
        mark.touch()
        with pytest.raises(UserError, match="do not start"):
            pool.verify([ask("die")] + [ask(f"die {i}") for i in range(5)])
        mark.unlink()
        assert pool.verify(GOOD) == RIGHT


CAUSES = {
    "die 0": "its worker process ended itself with exit code 0",
    "die 3": "its worker process ended itself with exit code 3",
    "exit": "it called sys.exit(3) instead of returning a result",
    "quit": "it called sys.exit(None) instead of returning a result",
    "signal 9": "its worker process was killed (SIGKILL), most likely for lack of memory",
    "signal 15": "its worker process was ended by SIGTERM",
    "signal 11": "its worker process was ended by SIGSEGV",
    "abort": "its worker process was ended by SIGABRT",
    "eat memory": "MemoryError: it needs more than verification.memory allows",
    "close": "its worker process closed its connection",
    "odd": "its result cannot be read: RuntimeError: never",
    "lambda": "lambda",
}


def test_how_a_judgement_failed_is_told() -> None:
    names = {f"t{i}": what for i, what in enumerate(CAUSES)}
    asked = [(Prompt(f"{name}/x", name, "?", "gold"), what) for name, what in names.items()]
    with VerifierPool({"t": Hostile()} | dict.fromkeys(names, Hostile()), workers=2) as pool:
        found = pool.verify([*GOOD, *asked])
        assert found[: len(GOOD)] == RIGHT
        assert set(found[len(GOOD) :]) == {Verdict(None, Outcome.SCORER_ERROR)}
        for name, what in names.items():
            assert CAUSES[what] in pool.first_errors[name]


def test_a_worker_that_died_while_idle_is_replaced() -> None:
    with VerifierPool({"t": Hostile()}) as pool:
        pid = int(pool.verify([ask("pid")])[0].answer or 0)
        os.kill(pid, signal.SIGKILL)
        assert pool.verify(GOOD) == RIGHT


def test_an_interrupted_call_leaves_no_answers_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    with VerifierPool({"t": Hostile()}) as pool:
        assert pool.verify(GOOD) == RIGHT
        with monkeypatch.context() as patch:
            patch.setattr("hacrl.verify.workers.wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                pool.verify([ask("slow")])
        assert pool.verify(GOOD) == RIGHT


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def start_script(script: Path, text: str) -> subprocess.Popen[str]:
    script.write_text(text)
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
    return process


def test_interrupt_ends_everything_with_one_traceback(tmp_path: Path) -> None:
    process = start_script(tmp_path / "script.py", busy("hold the GIL"))
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the group
    # Returns when nobody holds the error stream any more, so no worker is left either.
    _, errors = process.communicate(timeout=60)
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")


BUSY = r"""
import signal, sys
sys.path.append({tests!r})

from verifier_stubs import Hostile

from hacrl.records import Prompt
from hacrl.verify import VerifierPool

if __name__ == "__main__":
    # A shell starts what is in its background with interrupts ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with VerifierPool({{"t": Hostile()}}, workers=2, seconds=600) as pool:
        pool.verify([(Prompt("t/0", "t", "?", "x"), "pid")])
        print("started", flush=True)
        pool.verify([(Prompt("t/0", "t", "?", "x"), {what!r})])
"""


def busy(what: str) -> str:
    """A script whose worker does one thing for ever."""
    return BUSY.format(tests=str(Path(__file__).parent), what=what)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("what", ["idle", "sleep", "hold the GIL", "start another"])
def test_nothing_outlives_its_main_process(tmp_path: Path, how: int, what: str) -> None:
    text = busy(what)
    if what == "idle":
        text = text.replace(
            '        pool.verify([(Prompt("t/0", "t", "?", "x"), \'idle\')])',
            "        import time; time.sleep(600)",
        )
    process = start_script(tmp_path / "script.py", text)
    process.send_signal(how)
    # Workers, and what they have started, hold the error stream as long as they live.
    process.communicate(timeout=60)
    assert process.returncode == -how


UNGUARDED = r"""
import sys
sys.path.append({tests!r})

from verifier_stubs import Hostile

from hacrl.records import Prompt
from hacrl.verify import VerifierPool

pairs = [(Prompt("t/0", "t", "?", "x"), str(i)) for i in range(3_000)]
VerifierPool({{"t": Hostile()}}, workers=2).verify(pairs)
"""


def test_a_script_without_a_main_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED.format(tests=str(Path(__file__).parent)))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 1
    assert "do not start" in done.stderr.splitlines()[-2]
    assert done.stderr.splitlines()[-1] == (
        'A script that trains needs its calls below `if __name__ == "__main__":`'
    )

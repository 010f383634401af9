"""Timing, and where a wish to stop takes effect."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from hacrl.phases import Interrupted, Phases, finish_phase_on_interrupt


def test_seconds_are_by_phase_and_start_anew() -> None:
    phases = Phases(lambda name, step: None, lambda: False)
    for name in ("sample", "learn", "sample"):
        with phases(name, 0):
            pass
    assert list(phases.seconds()) == ["sample", "learn"]
    assert phases.seconds() == {}


def test_a_phase_ends_before_the_run_stops() -> None:
    started: list[tuple[str, int]] = []
    with finish_phase_on_interrupt() as stop:
        phases = Phases(lambda name, step: started.append((name, step)), stop)
        finished = False
        with phases("learn", 4):
            os.kill(os.getpid(), signal.SIGINT)
            finished = True
        assert finished
        with pytest.raises(Interrupted), phases("sample", 5):
            pytest.fail("the next phase must not start")
    assert started == [("learn", 4)]


def test_a_second_interrupt_stops_at_once_and_the_handler_is_put_back(
    capfd: pytest.CaptureFixture[str],
) -> None:
    previous = signal.getsignal(signal.SIGINT)

    def interrupt_twice() -> None:
        with finish_phase_on_interrupt():
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            signal.sigtimedwait([], 1)

    with pytest.raises(KeyboardInterrupt):
        interrupt_twice()
    assert capfd.readouterr().err.count("stopping after this phase") == 1
    assert signal.getsignal(signal.SIGINT) is previous


def test_outside_the_main_thread_nothing_is_installed() -> None:
    stops: list[bool] = []

    def work() -> None:
        with finish_phase_on_interrupt() as stop:
            stops.append(stop())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert stops == [False]

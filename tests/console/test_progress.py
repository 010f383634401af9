from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from hacrl.console.progress import duration, watch
from hacrl.console.terminal import is_live

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def row(agent: str, sources: dict[str, float], **changes: Any) -> dict[str, Any]:
    base = {
        "step": 2,
        "agent": agent,
        "reward": 0.521,
        "capability": 0.5,
        "on_policy": False,
        "groups": 8,
        "groups_without_signal": 3,
        "sources": {name: {"teaching": share} for name, share in sources.items()},
        "seconds": {"sample": 3.0, "verify": 0.2, "learn": 1.0},
    }
    return base | changes


PAIR = [
    row("kim", {"lee": 0.41}),
    row("lee", {"kim": 0.33}, reward=0.41, capability=0.39),
]


def plain(metrics: list[dict[str, Any]], *notes: str) -> str:
    console = Console(file=io.StringIO(), width=40)
    with watch(60, console) as observer:
        for text in notes:
            observer.note(text)
        observer.phase("sample", 2)
        observer.step(metrics, 190.0)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert not CONTROL.search(text)
    return text


def live(metrics: list[dict[str, Any]], width: int = 80, **options: Any) -> str:
    """What is written to a terminal, without its control sequences."""
    console = Console(file=Terminal(), force_terminal=True, width=width, **options)
    with watch(60, console) as observer:
        observer.note("14 prompts; loading kim")
        observer.phase("learn", 2)
        observer.step(metrics, 190.0)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_a_step_is_one_line_that_fits_a_terminal() -> None:
    head, line = plain(PAIR).splitlines()
    assert head == "each step: agent, mean reward, (<-peer: share of its rows learned from)"
    assert line == "step 3/60 | kim 0.52 (<-lee 41%) | lee 0.41 (<-kim 33%) | 4.2s | 3m10s left"
    assert max(len(head), len(line)) <= 80


def test_lines_are_explained_once() -> None:
    console = Console(file=io.StringIO(), width=40)
    with watch(60, console) as observer:
        observer.step(PAIR, 2.0)
        observer.step(PAIR, 1.0)
    assert len(console.file.getvalue().splitlines()) == 3  # type: ignore[attr-defined]


def test_a_long_note_stays_one_line() -> None:
    assert plain(PAIR, "lee: [bold] " + "word " * 30).startswith("note: lee: [bold] word word")
    assert len(plain(PAIR, "word " * 30).splitlines()) == 3


def test_what_is_unknown_is_a_gap() -> None:
    assert "| kim - |" in plain([row("kim", {}, reward=None, capability=None)])


def test_an_agent_alone_has_no_teachers() -> None:
    head, line = plain([row("kim", {})]).splitlines()
    assert head == "each step: agent, mean reward"
    assert "<-" not in line


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        ((True, True), "| on-policy |"),
        ((False, True), "| on-policy: lee |"),
    ],
)
def test_a_single_update_is_said_to_be_on_policy(flags: tuple[bool, bool], part: str) -> None:
    metrics = [
        row(name, {}, on_policy=flag) for name, flag in zip(("kim", "lee"), flags, strict=True)
    ]
    assert part in plain(metrics)
    assert "on-policy" not in plain(PAIR)
    assert part.strip("| ") in live(metrics)


def test_a_terminal_shows_a_table_and_what_is_going_on() -> None:
    text = live(PAIR)
    for part in ("3/60", "learn", "3m10s left", "no signal", "3/8", "<-lee 41%", "<-kim 33%"):
        assert part in text
    assert "note: 14 prompts; loading kim" in text


@pytest.mark.parametrize("width", [60, 80])
def test_a_terminal_is_never_overrun(width: int) -> None:
    assert max(len(line) for line in re.split("[\r\n]", live(PAIR, width))) <= width


def test_colour_can_be_turned_off() -> None:
    console = Console(file=Terminal(), force_terminal=True, width=80, no_color=True)
    with watch(60, console) as observer:
        observer.step(PAIR, 1.0)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", text)


def test_a_pipe_is_not_live_even_if_colour_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert not is_live(Console(file=io.StringIO()))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.0s"),
        (4.23, "4.2s"),
        (9.96, "10s"),
        (59.4, "59s"),
        (59.6, "1m00s"),
        (190, "3m10s"),
        (3599.6, "1h00m"),
        (7500, "2h05m"),
        (100 * 3600, "100h00m"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_the_phases_of_long_steps_are_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a step is long, the last line says what is going on."""
    clock = [0.0]
    monkeypatch.setattr("hacrl.console.progress.time.monotonic", lambda: clock[0])
    console = Console(file=io.StringIO(), width=40)
    with watch(60, console) as observer:
        for now, name in ((5.0, "sample"), (200.0, "verify"), (210.0, "save"), (211.0, "learn")):
            clock[0] = now
            observer.phase(name, 2)
        observer.step(PAIR, 1.0)
        observer.phase("sample", 3)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert [line for line in text.splitlines() if line.startswith("step") and "|" not in line] == [
        f"step 3/60: {name}" for name in ("verify", "save", "learn")
    ]

"""The phase that is shown is the phase that runs, and each is given its own time."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from hacrl.agents.learning.reporting import LearnReport
from hacrl.algorithm.capability import CapabilityTracker
from hacrl.config import recipe_from_dict
from hacrl.console.observer import Silent
from hacrl.fleet import AgentLost, LocalFleet
from hacrl.phases import Interrupted, Phases
from hacrl.records import Outcome, Prompt, Rollout, Verdict
from hacrl.runs.checkpoints import checkpoints
from hacrl.tasks import PromptStream
from hacrl.training.loop import co_train
from hacrl.training.train import train
from hacrl.verify import VerifierPool
from tests.algorithms import algorithm

MakeRecipe = Callable[..., dict[str, Any]]


class Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Stub:
    """Fleet and verifiers of one agent; says which phase each piece of work was done in."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.phase = ""
        self.done: list[tuple[str, str]] = []

    def work(self, what: str, seconds: float) -> None:
        self._clock.now += seconds
        self.done.append((what, self.phase))

    def sample(self, *_: object, **__: object) -> Mapping[str, Sequence[Rollout]]:
        self.work("sample", 1.0)
        return {"kim": [Rollout(0, "kim", i, 0, "1", -1.0, 1, True) for i in range(2)]}

    def verify(self, pairs: Sequence[object]) -> list[Verdict]:
        self.work("verify", 10.0)
        return [Verdict(1.0, Outcome.RIGHT) for _ in pairs]

    def learn(self, *_: object) -> list[LearnReport]:
        self.work("learn", 1000.0)
        return []


def test_each_phase_has_its_own_time_and_is_the_one_that_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr("hacrl.phases.time.perf_counter", clock)
    stub = Stub(clock)
    results = co_train(
        cast(Any, stub),
        PromptStream([Prompt("p", "bits", "1=", "1")], 1, 0, {"bits": 1.0}),
        cast(VerifierPool, stub),
        CapabilityTracker(("kim",), 1, "mean_reward", 10.0),
        algorithm(),
        {"kim": ()},
        steps=range(2),
        group_size=2,
        phases=Phases(lambda name, _: setattr(stub, "phase", name), lambda: False),
        before_learning=lambda: stub.work("save", 100.0),
    )
    for result in results:
        assert result.seconds == {"sample": 1, "verify": 10, "save": 100, "learn": 1000}
        assert list(result.seconds) == ["sample", "verify", "save", "learn"]
    assert stub.done == [(name, name) for name in ("sample", "verify", "save", "learn")] * 2


class Shown(Silent):
    """What is on display, and all that was; may act once when a phase of a step
    begins."""

    def __init__(self, acts: Mapping[tuple[str, int], Callable[[], object]] | None = None) -> None:
        self.now = ""
        self.all: list[tuple[str, int]] = []
        self.notes: list[str] = []
        self._acts = dict(acts or {})

    def note(self, text: str) -> None:
        self.notes.append(text)

    def phase(self, name: str, step: int) -> None:
        self.now = name
        self.all.append((name, step))
        self._acts.pop((name, step), lambda: None)()


def test_a_checkpoint_beside_sampling_is_shown_only_while_it_is_waited_for(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited_for = threading.Event()
    shown = Shown({("save", 1): waited_for.set})
    seen: list[tuple[str, str]] = []
    checkpoint, sample, learn, save = (
        getattr(LocalFleet, name) for name in ("checkpoint", "sample", "learn", "save")
    )

    def slow(self: LocalFleet, folder: Path) -> None:
        """The first ends once it is waited for, long after the next step has begun to sample."""
        assert waited_for.wait(60)
        checkpoint(self, folder)

    def noted(whole: Any, name: str) -> Any:
        def work(self: LocalFleet, *args: Any, **options: Any) -> Any:
            seen.append((name, shown.now))
            return whole(self, *args, **options)

        return work

    monkeypatch.setattr(LocalFleet, "checkpoint", slow)
    monkeypatch.setattr(LocalFleet, "sample", noted(sample, "sample"))
    monkeypatch.setattr(LocalFleet, "learn", noted(learn, "learn"))
    monkeypatch.setattr(LocalFleet, "save", noted(save, "save"))
    raw = tiny_recipe(steps=2, checkpoints={"every": 1})
    raw["evaluation"] = {"tasks": {"held": raw["tasks"]["bits"]}, "every": 2, "limit": 2}
    run = train(recipe_from_dict(raw), tmp_path, shown)
    assert seen == [
        *(("sample", "sample"), ("learn", "learn")),
        *(("sample", "sample"), ("learn", "learn")),
        *(("sample", "evaluate"), ("save", "save")),
    ]
    step = ("sample", "verify", "save", "learn")
    ending = [("evaluate", 1), ("save", 1)]
    assert shown.all == [*((name, 0) for name in step), *((name, 1) for name in step), *ending]
    rows = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    assert all(list(row["seconds"]) == list(step) for row in rows)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("phase", ["sample", "verify", "save", "learn"])
def test_a_wish_to_stop_in_any_phase_keeps_all_that_was_learned(
    tiny_recipe: MakeRecipe, tmp_path: Path, phase: str
) -> None:
    shown = Shown({(phase, 1): interrupt})
    with pytest.raises(Interrupted):
        train(recipe_from_dict(tiny_recipe()), tmp_path, shown)
    learned = 2 if phase == "learn" else 1
    assert [c.step for c in checkpoints(tmp_path / "tiny" / "checkpoints")] == [learned]
    assert shown.all[-1] == ("save", 1)


def test_an_agent_that_is_lost_while_a_stopped_run_is_saved_does_not_start_it_again(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(self: LocalFleet, folder: Path) -> None:
        raise AgentLost("agent kim was lost in checkpoint: it is a test")

    monkeypatch.setattr(LocalFleet, "checkpoint", gone)
    shown = Shown({("verify", 1): interrupt})
    with pytest.raises(Interrupted):
        train(recipe_from_dict(tiny_recipe()), tmp_path, shown)
    (note,) = [text for text in shown.notes if "was lost" in text]
    assert note.startswith("agent kim was lost in checkpoint: it is a test; the newest checkpoint")
    assert json.loads((tmp_path / "tiny" / "state.json").read_text())["state"] == "interrupted"

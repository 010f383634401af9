"""What a template that prints the time makes of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hacrl.config import recipe_from_dict
from hacrl.console.observer import Silent
from hacrl.evaluation.targets import find_targets, target_fingerprint
from hacrl.runs import clock
from hacrl.runs.clock import recorded_clock
from hacrl.training.train import train
from scripts.crash_test.comparing import content

MakeRecipe = Callable[..., dict[str, Any]]


class Notes(Silent):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


class Calendar(datetime):
    """Says that it is another day every time."""

    today = 0

    @classmethod
    def now(cls, tz: Any = None) -> Calendar:
        cls.today += 1
        return cls(2030, 1, cls.today, 12, 30)


@pytest.fixture
def raw(tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """kim's template turns the day into bits."""
    monkeypatch.setattr(clock, "datetime", Calendar)
    Calendar.today = 0
    (tmp_path / "dated.jinja").write_text(
        "{% for d in strftime_now('%d') %}{{ '1' if d in '13579' else '0' }}{{ '+' * (d | int) }}"
        "{% endfor %}{{ messages[0].content }}"
    )
    recipe = tiny_recipe(checkpoints={"every": 1}, clip={"own_low": 0.3, "own_high": 0.3})
    recipe["agents"]["kim"]["chat_template"] = str(tmp_path / "dated.jinja")
    return recipe


def test_the_clock_stands_still_at_the_start_of_a_run(raw: dict[str, Any], tmp_path: Path) -> None:
    notes = Notes()
    first = train(recipe_from_dict(raw), tmp_path / "1", notes).path
    said = [text for text in notes.texts if "prints the time" in text]
    assert said == [
        "agent kim: its chat template prints the time; it sees 2030-01-01 12:30:00 all through the "
        "run, or what clock says"
    ]
    train(recipe_from_dict(raw, ["steps=2"]), tmp_path / "2")  # on the second day
    train(recipe_from_dict(raw), tmp_path / "2", resume=True)  # on the third
    assert recorded_clock(first) == datetime(2030, 1, 1, 12, 30)
    assert recorded_clock(tmp_path / "2" / "tiny") == datetime(2030, 1, 2, 12, 30)
    again = train(recipe_from_dict(raw, ["clock=2030-01-02T12:30:00"]), tmp_path / "3").path
    one, resumed, fixed = (content(path) for path in (first, tmp_path / "2" / "tiny", again))
    rollouts = [name for name in one if name.startswith("rollouts/")]
    assert [resumed[name] for name in rollouts] == [fixed[name] for name in rollouts]
    assert [resumed[name] for name in rollouts] != [one[name] for name in rollouts]
    assert "clock" in json.loads((first / "state.json").read_text())


def test_an_evaluation_of_the_run_sees_its_clock(raw: dict[str, Any], tmp_path: Path) -> None:
    run = train(recipe_from_dict(raw, ["steps=1"]), tmp_path).path
    for text in (run, run / "agents" / "kim", run / "checkpoints" / "step-000001"):
        target = find_targets([str(text)])[0]
        assert target.clock == datetime(2030, 1, 1, 12, 30)
    state = json.loads((run / "state.json").read_text())
    before = [target_fingerprint(target) for target in find_targets([str(run)])]
    (run / "state.json").write_text(json.dumps(state | {"clock": "2031-01-01T00:00:00"}))
    after = [target_fingerprint(target) for target in find_targets([str(run)])]
    assert (before[0] == after[0], before[1] == after[1]) == (False, True), "lee prints no time"

"""Where a run repeats bit for bit is written down, and said when it goes on elsewhere."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hacrl.config import recipe_from_dict
from hacrl.console.observer import Silent
from hacrl.fleet.machine import machine
from hacrl.training.resuming import note_machines
from hacrl.training.train import train

HERE = {"processor": "Ryzen 9", "instructions": "AVX2", "threads": "2"}


class Notes(Silent):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


def test_what_decides_how_sums_are_rounded_is_known() -> None:
    found = machine()
    assert found.keys() == HERE.keys()
    assert all(found.values())
    assert found["threads"] == str(torch.get_num_threads())


def test_the_instructions_are_those_that_torch_uses() -> None:
    """Not those that the processor would have."""
    module = inspect.getsourcefile(machine)  # its package imports more than torch
    code = f"import runpy; print(runpy.run_path({module!r})['machine']()['instructions'])"
    told = os.environ | {"ATEN_CPU_CAPABILITY": "default"}
    done = subprocess.run([sys.executable, "-c", code], env=told, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "DEFAULT"


@pytest.mark.parametrize(
    ("before", "now", "note"),
    [
        ({"kim": HERE, "lee": HERE}, {"kim": HERE, "lee": HERE}, None),
        ({}, {"kim": HERE, "lee": HERE}, None),  # it was not written down
        (
            {"kim": HERE, "lee": HERE},
            {
                name: HERE | {"processor": "Xeon", "instructions": "AVX512"}
                for name in ("kim", "lee")
            },
            "another machine (kim, lee: was processor Ryzen 9, is Xeon; instructions AVX2, is "
            "AVX512): the run goes on, but not bit for bit",
        ),
        (
            {"kim": HERE, "lee": HERE},
            {"kim": HERE | {"threads": "8"}, "lee": HERE | {"processor": "Xeon"}},
            "another machine (kim: was threads 2, is 8; lee: was processor Ryzen 9, is Xeon): "
            "the run goes on, but not bit for bit",
        ),
        ({"kim": HERE}, {"kim": HERE, "lee": HERE | {"threads": "8"}}, None),
    ],
)
def test_another_machine_is_said_in_one_line(
    before: dict[str, dict[str, str]], now: dict[str, dict[str, str]], note: str | None
) -> None:
    notes: list[str] = []
    note_machines(before, now, notes.append)
    assert notes == ([note] if note else [])


def test_a_run_writes_its_machine_down_and_resuming_compares(
    tiny_recipe: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tiny_recipe(steps=1)
    run = train(recipe_from_dict(raw), tmp_path).path
    here = {name: machine() for name in ("kim", "lee")}
    assert here["kim"]["threads"] == "1"
    assert json.loads((run / "state.json").read_text())["machines"] == here
    assert json.loads((run / "checkpoints/step-000001/run.json").read_text())["machines"] == here
    notes = Notes()
    train(recipe_from_dict(raw, ["steps=2"]), tmp_path, notes, resume=True)
    assert not [text for text in notes.texts if "bit for bit" in text]
    monkeypatch.setattr("hacrl.fleet.local.machine", lambda: machine() | {"processor": "another"})
    train(recipe_from_dict(raw, ["steps=3"]), tmp_path, notes, resume=True)
    (text,) = [text for text in notes.texts if "bit for bit" in text]
    assert text.startswith("another machine (kim, lee: was processor ")
    assert text.endswith(", is another): the run goes on, but not bit for bit")
    assert "\n" not in text

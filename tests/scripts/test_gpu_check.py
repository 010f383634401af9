"""The check of a GPU: what it complains of, and that it claims nothing without one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from hacrl.config import load_recipe
from hacrl.config.bundled import find_recipe
from scripts.gpu_check.__main__ import main
from scripts.gpu_check.complaints import complaints
from scripts.gpu_check.ways import WAYS, Way, obstacle, overrides

FINE: dict[str, Any] = {
    "agent": "ada",
    "step": 0,
    "skipped_updates": 0,
    "unscored": 0,
    "logprob_gap": 1e-6,
    "updates": 2,
}


def test_without_a_gpu_nothing_is_claimed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main([]) == 2
    assert capsys.readouterr().out == "no GPU is visible to torch here; nothing was checked\n"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"skipped_updates": 1}, "ada in step 0: 1 updates were not finite"),
        ({"unscored": 3}, "ada in step 0: 3 responses were not scored"),
        ({"logprob_gap": 0.01}, "ada in step 0: sampling and learning differ by 1.0e-02"),
        ({"updates": 0}, "no update was made"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, Any], words: str) -> None:
    assert complaints([FINE], exact=True) == []
    (said,) = complaints([FINE | change], exact=True)
    assert said.startswith(words)


def test_half_precision_may_differ() -> None:
    assert complaints([FINE | {"logprob_gap": 0.01}], exact=False) == []


@pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_way_is_a_valid_recipe(way: Way, device: str) -> None:
    recipe = load_recipe(find_recipe("demo"), overrides(way, device, 3))
    assert {spec.device for spec in recipe.models.values()} == {device}
    assert recipe.steps == 3


def test_what_a_machine_lacks_is_named() -> None:
    assert obstacle(Way("alone"), 1) is None
    assert obstacle(Way("two", devices=2), 1) == "needs 2 GPUs"
    assert obstacle(Way("two", devices=2), 2) is None
    assert obstacle(Way("two", devices=2), None) is None
    assert obstacle(Way("engine", package="no_such_package"), 1) == "needs no_such_package"


@pytest.mark.slow
def test_the_script_itself_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--device", "cpu", "--steps", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for way in WAYS:
        (line,) = (line for line in lines if f" {way.name} " in line)
        assert " fine " in line or " needs " in line

"""What is said of memory before a run is what the run takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.memory import SHAPES, compared, make_model, make_recipe


@pytest.mark.slow
def test_the_prediction_is_what_a_run_takes(tmp_path: Path) -> None:
    make_model(SHAPES["SmolLM2-135M"], tmp_path)
    phases = compared(make_recipe(tmp_path, 1, 64))
    for phase in ("load", "sample", "learn"):
        assert abs(phases[phase]["error"]) <= 0.15, phase

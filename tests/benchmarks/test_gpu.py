"""The benchmark on a GPU: what it reports of phases, and that it runs through without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from benchmarks.gpu.__main__ import _summary, main
from benchmarks.gpu.meter import Meter, Phase


def test_without_a_gpu_nothing_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["--out", str(tmp_path / "gpu.json")]) == 2
    assert "nothing was measured" in capsys.readouterr().err
    assert not (tmp_path / "gpu.json").exists()


def test_a_phase_is_summed_up_by_its_median_its_rate_and_its_peak() -> None:
    turns = [{"learn": Phase(seconds, peak, 100)} for seconds, peak in ((1, 2), (4, 3), (2, 1))]
    gib = 2**30
    turns = [
        {name: Phase(p.seconds, p.peak * gib, p.tokens) for name, p in turn.items()}
        for turn in turns
    ]
    assert _summary(turns) == {
        "learn": {"seconds": 2, "tokens_per_second": 50.0, "peak_gib": 3.0},
    }


def test_the_peak_of_a_phase_is_not_that_of_the_one_before() -> None:
    meter, size = Meter(on_gpu=False), 256 * 2**20
    meter.begin("large")
    torch.ones(size, dtype=torch.uint8)
    meter.begin("small")
    phases = meter.end(7)
    assert list(phases) == ["large", "small"]
    assert phases["large"].peak - phases["small"].peak > size / 2
    assert phases["small"].tokens == 7


@pytest.mark.slow
def test_the_script_itself_runs(tmp_path: Path) -> None:
    out = tmp_path / "gpu.json"
    assert main(["--device", "cpu", "--rounds", "1", "--out", str(out)]) == 0
    phases = json.loads(out.read_text("utf-8"))["phases"]
    assert {side: [*own] for side, own in phases.items()} == {
        "hacrl": ["sample", "learn"],
        "TRL": ["sample", "learn"],
    }

"""Where the page and the figures of `hacrl report` go, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from hacrl.cli.app import app
from hacrl.report.drawing import Chart
from tests.report.conftest import CopyRun


def shown(*folders: Path, **options: object) -> str:
    words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    result = CliRunner().invoke(app, ["report", *map(str, folders), *words])
    return result.output


@pytest.mark.usefixtures("sketches")
def test_the_page_of_one_run_lies_in_it_and_of_several_here(
    copy_run: CopyRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = copy_run("first"), copy_run("second")
    monkeypatch.chdir(tmp_path)
    assert shown(first).startswith(f"report: {first / 'report.html'} (")
    assert shown(first, second).startswith("report: report.html (")
    assert shown(first, first, out=tmp_path / "new" / "x.html", browse=0)
    for page in (first / "report.html", tmp_path / "report.html", tmp_path / "new" / "x.html"):
        assert page.read_text().startswith("<!doctype html>")
    assert not (second / "report.html").exists()


@pytest.mark.usefixtures("unarranged")
def test_figures_are_written_in_both_formats(
    copy_run: CopyRun, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    draw = Chart.save
    request.getfixturevalue("sketches")  # of all figures but one
    sketch = Chart.save

    def save(chart: Chart, *files: Path) -> None:
        (draw if chart.name == "learning" else sketch)(chart, *files)

    request.getfixturevalue("monkeypatch").setattr(Chart, "save", save)
    folder, figures = copy_run(), tmp_path / "figures"
    text = shown(folder, figures=figures)
    assert f"figures: 11 in {figures}, each as .png and .svg" in text
    names = sorted(path.name for path in figures.iterdir())
    assert len(names) == 22
    assert {"learning.png", "matrix.svg", "alignment.png"} <= set(names)
    with Image.open(figures / "learning.png") as image:
        assert image.width > 1000
    assert "<svg" in (figures / "learning.svg").read_text()


@pytest.mark.usefixtures("sketches")
def test_figures_of_several_runs_begin_with_their_label(
    copy_run: CopyRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[str] = []
    monkeypatch.setattr(Chart, "save", lambda self, *files: saved.extend(f.name for f in files))
    runs = copy_run("x/a"), copy_run("y/a", steps=9)
    shown(*runs, out=tmp_path / "report.html", figures=tmp_path, browse=0)
    assert {"learning.svg", "x-a-matrix.svg", "y-a-matrix.svg"} <= set(saved)


@pytest.mark.usefixtures("sketches")
def test_what_was_left_out_is_said(copy_run: CopyRun) -> None:
    folder = copy_run()
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "ag')
    text = shown(folder)
    assert "note: pair: metrics.jsonl: the last line is not complete and is ignored" in text
    assert "the last line is not complete" in (folder / "report.html").read_text()


@pytest.mark.usefixtures("sketches")
def test_what_cannot_be_written_is_refused(copy_run: CopyRun, tmp_path: Path) -> None:
    folder = copy_run()
    (tmp_path / "file").write_text("")
    assert "file/x.html: cannot be written" in shown(folder, out=tmp_path / "file" / "x.html")
    assert "file: cannot be written" in shown(folder, figures=tmp_path / "file")

"""A study from its grid to its tables, with the demo's models in place of its own."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from hacrl.paths import resolve
from studies import running
from studies.__main__ import SMOKE
from studies.comparing import by_setting, difference, final, overall, scores
from studies.figures import draw_rates
from studies.grid import Cell, Grid
from studies.problems import HELD_OUT, study_problems, write_sets
from studies.report import write_report
from studies.running import finished, run_all


def _grid() -> Grid:
    grid = Grid.load()
    settings = {"model": ["llama", "qwen"]}
    main = grid.main.model_copy(update={"methods": ["gspo", "hacpo"], "settings": ["model"]})
    ablations = grid.ablations.model_copy(update={"methods": ["alpha_0"], "settings": ["model"]})
    rate = grid.questions["rate"].model_copy(update={"methods": ["gspo", "hacpo"]})
    tight = grid.questions["tight"].model_copy(update={"methods": ["hacpo"]})
    changes = {
        "settings": settings,
        "main": main,
        "ablations": ablations,
        "questions": {"rate": rate, "tight": tight},
    }
    return grid.model_copy(update=changes).smaller((*SMOKE, "sampling.max_new_tokens=16"))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    shutil.copytree(resolve("bundled:demo/assets/qwen3-char"), folder / "qwen")
    shutil.copytree(resolve("bundled:demo/assets/llama-bpe"), folder / "llama")
    write_sets(folder / "data", study_problems(1))
    return folder


def test_from_the_grid_to_the_tables(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The runs are made here: a process of their own would import everything once more.
    monkeypatch.setattr(running, "ProcessPoolExecutor", lambda jobs, **_: ThreadPoolExecutor(jobs))
    grid = _grid()
    cells = grid.cells({"gspo": 5e-5, "hacpo": 1e-4})
    assert [cell.name for cell in cells] == [
        *("gspo.llama.0", "gspo.qwen.0", "hacpo.model.0", "alpha_0.model.0"),  # its own rates
        *("gspo.llama.0", "gspo.qwen.0", "hacpo.model.0.5e-05", "hacpo.model.0.tight"),
    ]
    recipes = [grid.recipe_of(cell, models) for cell in {c.name: c for c in cells}.values()]
    runs, output = tmp_path / "runs", StringIO()
    console = Console(file=output, width=200)
    run_all(recipes, runs, 1, console)
    assert all(finished(recipe, runs) for recipe in recipes)

    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "search.csv").write_text(
        "method,learning_rate,setting,agent,accuracy\ngspo,0.0001,alone,qwen,0.5\n"
    )
    write_report(grid, cells, runs, tmp_path / "results", tmp_path / "pages", console)
    table = pd.read_csv(tmp_path / "results" / "results.csv")
    assert set(table["task"]) == set(HELD_OUT)
    # Two agents in four sharing runs and twice alone; two evaluations each, and one at the start
    # for those alone, who serve the main table and a question.
    assert len(table) == (2 * 4 * 2 + 2 * 2 * 3) * len(HELD_OUT)
    after = table[table["step"] == 2]
    assert set(after["rollouts"]) == {2 * 4 * 8}
    tables = (tmp_path / "pages" / "tables.md").read_text(encoding="utf-8")
    assert "HACPO − GSPO" in tables
    assert all(question.title in tables for question in grid.questions.values())
    assert len(list((tmp_path / "pages").glob("*.svg"))) == 8

    # Once more: nothing is missing, until a run is found unfinished or to be of another recipe.
    before = (runs / "hacpo.model.0" / "metrics.jsonl").stat().st_mtime_ns
    run_all(recipes, runs, 1, console)
    assert (runs / "hacpo.model.0" / "metrics.jsonl").stat().st_mtime_ns == before
    assert not finished(recipes[0].model_copy(update={"steps": 3}), runs)
    state = runs / "hacpo.model.0" / "state.json"
    state.write_text(state.read_text(encoding="utf-8").replace("finished", "running"))
    assert not finished(recipes[2], runs)


def _rows(method: str, setting: str, agent: str, *accuracies: float) -> list[dict[str, object]]:
    return [
        {"method": method, "setting": setting, "agent": agent, "seed": s, "accuracy": a, "step": 9}
        for s, a in enumerate(accuracies)
    ]


def test_differences_are_paired_by_seed_and_agent() -> None:
    grid = Grid.load()
    table = pd.DataFrame(
        [
            *_rows("gspo", "alone", "qwen", 0.1, 0.5),
            *_rows("gspo", "alone", "llama", 0.2, 0.2),
            *_rows("hacpo", "model", "qwen", 0.2, 0.6),
            *_rows("hacpo", "model", "llama", 0.5, 0.5),
        ]
    )
    found = scores(final(by_setting(table, grid.main_settings)))
    gap = difference(found, "hacpo", "gspo", "model", "qwen")
    assert gap.mean == pytest.approx(0.1)
    assert gap.half_width == pytest.approx(0.0, abs=1e-12)  # although the seeds differ by 0.4
    assert overall(found, "hacpo", "gspo").mean == pytest.approx((0.1 + 0.3) / 2)


def test_the_figure_of_rates_shows_every_rate_and_method(tmp_path: Path) -> None:
    table = pd.DataFrame(
        [
            row | {"learning_rate": rate}
            for rate in (5e-5, 1e-4)
            for method in ("gspo", "hacpo")
            for row in _rows(method, "model", "qwen", 0.2, 0.6)
        ]
    )
    draw_rates(table, ["gspo", "hacpo"], "rate", tmp_path)
    drawn = (tmp_path / "rate.svg").read_text(encoding="utf-8")
    assert all(text in drawn for text in ("GSPO", "HACPO", "5e-05", "0.0001"))


def test_a_cell_by_itself_is_named_after_its_agent() -> None:
    alone = Cell("main", "gspo", "alone", ("qwen",), 3, 1e-4)
    assert alone.name == "gspo.qwen.3"

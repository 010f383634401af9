"""The cells of the grid."""

from __future__ import annotations

from pathlib import Path

import pytest

from hacrl.config import Recipe
from studies.grid import ALONE, MAIN, Cell, Grid
from studies.models import MODELS
from studies.problems import HELD_OUT, TRAIN, TUNING, study_problems

GRID = Grid.load()
RATES = dict.fromkeys(GRID.main.methods, 1e-4)


def test_cells_that_share_a_run_have_the_same_recipe() -> None:
    recipes: dict[str, Recipe] = {}
    for cell in [*GRID.cells(RATES), *GRID.tuning_cells()]:
        recipe = GRID.recipe_of(cell, Path("models"))
        assert recipes.setdefault(cell.name, recipe) == recipe


def test_a_part_has_a_run_for_each_of_its_cells() -> None:
    cells = [*GRID.cells(RATES), *GRID.tuning_cells()]
    assert len({(cell.part, cell.name) for cell in cells}) == len(cells)


def test_a_question_reuses_the_main_table_where_nothing_differs() -> None:
    cells = GRID.cells(RATES)
    main = {cell.name for cell in cells if cell.part == MAIN}
    assert {c.name for c in cells if c.part == "rate" and c.learning_rate == 1e-4} <= main
    assert {c.name for c in cells if c.part == "rate" and c.learning_rate != 1e-4}.isdisjoint(main)
    assert {c.name for c in cells if c.part == "longer"}.isdisjoint(main)
    longer = next(c for c in cells if c.part == "longer")
    assert GRID.recipe_of(longer, Path("models")).steps == 2 * GRID.recipe["steps"]


def test_every_method_meets_every_setting_at_every_seed() -> None:
    cells = GRID.cells(RATES)
    for seed in GRID.main.seeds:
        for method in GRID.main.methods:
            own = [c for c in cells if (c.part, c.method, c.seed) == (MAIN, method, seed)]
            if GRID.alone(method):
                assert {c.agents for c in own} == {(name,) for name in MODELS if name != "early"}
            else:
                assert {c.setting for c in own} == set(GRID.main.settings)


@pytest.mark.parametrize("cell", GRID.cells(RATES), ids=lambda cell: f"{cell.part}.{cell.name}")
def test_every_cell_is_a_valid_recipe(cell: Cell) -> None:
    recipe = GRID.recipe_of(cell, Path("models"))
    assert tuple(recipe.agents) == cell.agents
    assert recipe.seed == cell.seed
    assert recipe.optimizer.learning_rate == cell.learning_rate
    assert recipe.evaluation is not None
    assert set(recipe.evaluation.tasks) == set(HELD_OUT)
    assert (cell.setting == ALONE) == (not any(recipe.sources(name) for name in recipe.agents))


def test_all_methods_search_equally() -> None:
    tried = GRID.tuning_cells()
    for method in GRID.main.methods:
        rates = [c.learning_rate for c in tried if c.method == method]
        assert set(rates) == set(GRID.tuning.learning_rates)
    assert {c.seed for c in tried}.isdisjoint(GRID.main.seeds)
    assert {tuple(GRID.recipe_of(c, Path("m")).evaluation.tasks) for c in tried} == {(TUNING,)}


def test_an_agent_learns_from_stronger_ones_only() -> None:
    cell = next(c for c in GRID.cells(RATES) if (c.method, c.setting) == ("one_way", "three"))
    recipe = GRID.recipe_of(cell, Path("models"))
    assert [recipe.sources(name) for name in cell.agents] == [
        cell.agents[:i] for i in range(len(cell.agents))
    ]


def test_no_problem_is_in_two_sets() -> None:
    sets = study_problems(1)
    assert set(sets) == {*HELD_OUT, TRAIN, TUNING}
    drawn = [problem for problems in sets.values() for problem in problems]
    assert len(set(drawn)) == len(drawn)
    assert study_problems(1) == sets

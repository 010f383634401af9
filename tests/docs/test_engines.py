"""The page on engines shows the protocol as it is, and says of each method how it could be done."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "engines.md").read_text("utf-8")
METHODS = ["start", "draw", "load", "sleep", "close"]


def test_the_listings_are_the_code() -> None:
    from hacrl.agents.sampling.engines import base

    listed = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert sorted(listed) == sorted(inspect.getsource(getattr(base, name)) for name in base.__all__)


def test_the_protocol_has_five_methods_and_each_is_explained_for_sglang() -> None:
    from hacrl.agents.sampling.engines.base import Engine

    assert [name for name in vars(Engine) if not name.startswith("_")] == METHODS
    section = PAGE.split("\n## SGLang\n")[1]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == METHODS
    assert "Not shipped, and not run" in section


def test_what_the_page_names_is_there() -> None:
    pytest.importorskip("torch")
    from hacrl.agents.sampling import making
    from hacrl.config import sampler

    inherited = ("dtype", "max_model_len", "sleep", "seconds", "tolerance")
    assert {"type", *inherited} == set(sampler.EngineSampling.model_fields)
    for name in (*inherited, "EngineSampling", "SamplerSpec", "MakeEngine", "ENGINES"):
        assert f"`{name}`" in PAGE
        assert name in inherited or hasattr(making, name) or hasattr(sampler, name)
    root = Path(__file__).resolve().parents[2]
    for path in re.findall(r"`((?:hacrl|tests)/[\w/]+\.py)`", PAGE):
        assert (root / path).is_file() or (root / "src" / path).is_file(), path


def test_every_type_of_engine_has_its_settings_and_its_maker() -> None:
    pytest.importorskip("torch")
    from hacrl.agents.sampling.making import ENGINES
    from hacrl.config.sampler import EngineSampling

    types = {kind.model_fields["type"].default for kind in EngineSampling.__subclasses__()}
    assert types == set(ENGINES)

"""Every kind of source has a place that people are shown."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from pydantic import BaseModel

from hacrl.config.sources import Source
from hacrl.runs.origin import origin

KINDS: tuple[type[BaseModel], ...] = get_args(get_args(Source)[0])
SHOWN: dict[str, tuple[dict[str, Any], str]] = {
    "jsonl": ({"path": "a/b.jsonl"}, "jsonl a/b.jsonl"),
    "json": ({"path": "b.json", "key": "data.rows"}, "json b.json (data.rows)"),
    "csv": ({"path": "b.csv", "limit": 5000}, "csv b.csv (the first 5,000)"),
    "parquet": ({"path": "b.parquet"}, "parquet b.parquet"),
    "hub": (
        {"id": "openai/gsm8k", "config": "main", "split": "test", "revision": "c0ffee"},
        "hub openai/gsm8k (main, test, c0ffee)",
    ),
    "benchmark": ({"name": "gsm8k", "path": "x.jsonl"}, "benchmark gsm8k x.jsonl"),
    "reasoning_gym": (
        {"name": "chain_sum", "config": {"min_terms": 2}},
        "reasoning_gym chain_sum (10,000 problems, seed 0)",
    ),
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_place_of_every_kind(kind: type[BaseModel]) -> None:
    name = kind.model_fields["type"].default
    settings, text = SHOWN[name]
    assert origin(kind(**settings).model_dump(mode="json")) == text


def test_a_mixture_names_its_generators_and_nothing_is_no_error() -> None:
    mixture = {"type": "reasoning_gym", "generators": {"a": {}, "b": {}}, "size": 5, "seed": 1}
    assert origin(mixture) == "reasoning_gym a, b (5 problems, seed 1)"
    assert origin({}) == ""

"""The key `sampler`: short and long form, what is refused, what follows from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from hacrl.config.changes import changes
from hacrl.config.explain import explain
from hacrl.config.sampler import HuggingFaceSampling, VllmSampling
from hacrl.config.schema import Recipe

Make = Callable[..., dict[str, Any]]


def recipe(make: Make, sampler: object, **changes: Any) -> Recipe:
    raw = make(**changes)
    if sampler is not None:
        raw["agents"]["kim"]["sampler"] = sampler
    return Recipe.model_validate(raw)


def test_the_name_stands_for_a_section(tiny_recipe: Make) -> None:
    assert recipe(tiny_recipe, None).agents["kim"].sampler == HuggingFaceSampling()
    assert recipe(tiny_recipe, "vllm").agents["kim"].sampler == VllmSampling()
    found = recipe(tiny_recipe, {"type": "vllm", "seconds": 5})
    assert found.agents["kim"].sampler == VllmSampling(seconds=5)
    assert Recipe.model_validate(found.model_dump(mode="json")) == found


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        ({"type": "vllm", "second": 5}, "unknown key agents.kim.sampler.second; did you mean sec"),
        ({"type": "hf", "seconds": 5}, "unknown key agents.kim.sampler.seconds"),
        (
            {"type": "vllm", "top_p": 0.9},
            "unknown key agents.kim.sampler.top_p: it would sample from another distribution",
        ),
        ("sglang", "agents.kim.sampler: "),
    ],
)
def test_what_is_wrong_is_said_in_the_recipes_terms(
    tiny_recipe: Make, sampler: object, message: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        recipe(tiny_recipe, sampler)
    assert explain(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("sampler", "update", "expected"),
    [
        ("hf", {}, False),
        ("vllm", {}, None),
        ("vllm", {"old_logprobs": "sampler"}, False),
        ("vllm", {"old_logprobs": "recompute"}, True),
        ("vllm", {"autocast": "bfloat16"}, True),
    ],
)
def test_a_probe_decides_about_old_logprobs_where_they_could_be_exact(
    tiny_recipe: Make, sampler: str, update: dict[str, Any], expected: bool | None
) -> None:
    assert recipe(tiny_recipe, sampler, update=update).recomputes("kim") is expected


def test_a_run_may_go_on_with_another_sampler(tiny_recipe: Make) -> None:
    found = changes(recipe(tiny_recipe, "hf"), recipe(tiny_recipe, {"type": "vllm"}))
    assert found
    assert all(change.harmless for change in found)

"""No recipe that `hacrl check` accepts ends in a traceback."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from hacrl.config import recipe_from_dict
from hacrl.errors import UserError
from tests.recipes.conftest import accepted, trained
from tests.recipes.keys import Key, all_keys, extremes, with_value

Raw = dict[str, Any]

UNLIKE_OTHERS = {
    # These start processes or talk to networks, and have tests of their own.
    *("FleetSpec.type", "FleetSpec.address", "Recipe.fleet", "AgentSpec.ranks"),
    *("WandbLogger", "TrackioLogger", "VllmSampling", "AgentSpec.trust_remote_code"),
    # As many problems as that are made at once.
    *("ReasoningGymSource.size",),
}
STARTS_WORKERS = {
    *("MathVerifier", "CodeVerifier", "CommandVerifier", "PythonVerifier", "ReasoningGymVerifier"),
    *("ReasoningGymSource", "GeneratorSpec", "BenchmarkSource", "Part", "SumVerifier"),
}
READ_BY_CHECK = ("agents", "tasks", "prompts", "evaluation", "loggers", "threads", "verification")
KEYS = [key for key in all_keys() if not {key.name, key.owner} & UNLIKE_OTHERS]
QUICK = [key for key in KEYS if key.owner not in STARTS_WORKERS]


def test_the_keys_are_those_of_the_schema() -> None:
    names = {key.name for key in all_keys()}
    assert {"Recipe.steps", "Lora.rank", "Part.weight", "GeneratorSpec.config"} <= names
    assert len(names) == len(all_keys()) > 200


@pytest.mark.parametrize("key", all_keys(), ids=str)
def test_every_extreme_is_a_recipe_or_a_short_refusal(
    key: Key, base: Raw, sections: Mapping[str, Any]
) -> None:
    refusals = []
    for value in extremes(key.node):
        try:
            recipe_from_dict(with_value(base, sections, key, value))
        except UserError as error:
            refusals.append(str(error))
    assert refusals, "some are of another type"
    for message in refusals:
        assert 1 <= len(message.splitlines()) <= 2
        assert len(message) < 700
        assert key.path[-1] in message or key.path[0] in message


@pytest.mark.usefixtures("readable")
def test_check_takes_every_extreme_that_the_schema_does(
    base: Raw, sections: Mapping[str, Any]
) -> None:
    verdicts: Counter[bool] = Counter()
    for key in QUICK:
        if key.path[0] in READ_BY_CHECK:
            for value in usable(key, base, sections)[::5]:
                verdicts[accepted(with_value(base, sections, key, value)) is not None] += 1
    assert min(verdicts[True], verdicts[False]) > 20


def usable(key: Key, base: Raw, sections: Mapping[str, Any]) -> list[Any]:
    """The extremes that the schema takes."""
    found = []
    for value in extremes(key.node):
        try:
            recipe_from_dict(with_value(base, sections, key, value))
        except UserError:
            continue
        found.append(value)
    return found


def combined(base: Raw, sections: Mapping[str, Any], pairs: list[tuple[Key, Any]]) -> Raw:
    """A recipe with several values. One that takes the place of another wins."""
    raw = base
    for key, value in pairs:
        try:
            raw = with_value(raw, sections, key, value)
        except (KeyError, TypeError, AttributeError, StopIteration, IndexError):
            continue  # what was put there before has no such section
    return raw


def draw_recipe(
    data: st.DataObject, keys: list[Key], base: Raw, sections: Mapping[str, Any]
) -> Raw:
    chosen = data.draw(st.lists(st.sampled_from(keys), min_size=1, max_size=3, unique=True))
    pairs = [
        (key, data.draw(st.sampled_from(values)))
        for key in chosen
        if (values := usable(key, base, sections))
    ]
    return combined(base, sections, pairs)


@settings(max_examples=12, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_check_accepts_trains_or_ends_in_one_line(
    data: st.DataObject, base: Raw, sections: Mapping[str, Any]
) -> None:
    raw = draw_recipe(data, QUICK, base, sections)
    recipe = accepted(raw)
    if recipe is not None:
        with tempfile.TemporaryDirectory() as root:
            trained(recipe, Path(root))


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_every_extreme_of_a_key_trains_or_ends_in_one_line(
    key: Key, base: Raw, sections: Mapping[str, Any], tmp_path: Path
) -> None:
    for number, value in enumerate(usable(key, base, sections)):
        recipe = accepted(with_value(base, sections, key, value))
        if recipe is not None:
            trained(recipe, tmp_path / str(number))


@pytest.mark.slow
@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_many_combinations_train_or_end_in_one_line(
    data: st.DataObject, base: Raw, sections: Mapping[str, Any]
) -> None:
    raw = draw_recipe(data, KEYS, base, sections)
    recipe = accepted(raw)
    if recipe is not None:
        with tempfile.TemporaryDirectory() as root:
            outcome = trained(recipe, Path(root))
            event(outcome.split(":")[0])
    else:
        event("refused by check")

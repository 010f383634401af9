from collections import Counter

import pytest

from hacrl.config.sources import ReasoningGymSource
from hacrl.config.tasks import Task
from hacrl.config.verifiers import MathVerifier
from hacrl.errors import UserError
from hacrl.tasks import load_task


def task(name: str = "chain_sum", **source: object) -> Task:
    return Task(source=ReasoningGymSource(name=name, **source), verifier=MathVerifier())


def test_problems_are_seeded_and_keep_their_metadata() -> None:
    config = {"min_terms": 2, "max_terms": 2}
    prompts = load_task("task", task(size=5, seed=1, config=config))
    assert [p.id for p in prompts] == [f"task/{i}" for i in range(5)]
    assert all(p.metadata["source_dataset"] == "chain_sum" for p in prompts)
    assert all(eval(str(p.metadata["expression"])) == int(p.gold) for p in prompts)
    assert prompts == load_task("task", task(size=5, seed=1, config=config))
    assert prompts != load_task("task", task(size=5, seed=2, config=config))


def test_unknown_generator() -> None:
    with pytest.raises(UserError, match="no generator 'chain_sums'; did you mean chain_sum"):
        load_task("task", task("chain_sums"))


@pytest.mark.parametrize("config", [{"terms": 3}, {"min_terms": -1}, {"min_terms": "three"}])
def test_bad_settings(config: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"source\.config: the generator chain_sum") as caught:
        load_task("task", task(size=2, config=config))
    assert len(str(caught.value).splitlines()) <= 2


def mixture(size: int, **generators: dict[str, object]) -> Task:
    source = {"type": "reasoning_gym", "generators": generators, "size": size, "seed": 3}
    return Task.model_validate({"source": source, "verifier": {"type": "math"}})


def test_a_mixture_holds_generators_by_weight() -> None:
    made = mixture(
        200,
        chain_sum={"weight": 3, "config": {"min_terms": 2, "max_terms": 2}},
        gcd={},
    )
    prompts = load_task("t", made)
    names = Counter(p.metadata["source_dataset"] for p in prompts)
    assert names["chain_sum"] + names["gcd"] == len(prompts) == 200
    assert 130 <= names["chain_sum"] <= 170
    assert {
        p.metadata["num_terms"] for p in prompts if p.metadata["source_dataset"] == "chain_sum"
    } == {2}
    assert prompts == load_task("t", made)


def test_difficulty_is_a_level_of_the_curriculum() -> None:
    terms = [
        max(
            int(str(p.metadata["num_terms"]))
            for p in load_task("t", task(size=30, difficulty=level))
        )
        for level in (0, 3)
    ]
    assert terms[0] < terms[1]
    config = {"min_terms": 2, "max_terms": 2}
    prompts = load_task("t", task(size=5, difficulty=3, config=config))
    assert {p.metadata["num_terms"] for p in prompts} == {2}
    with pytest.raises(UserError, match=r"source\.difficulty: .* acre has no difficulty levels"):
        load_task("t", task("acre", difficulty=1))


def test_a_mixture_names_what_is_wrong() -> None:
    with pytest.raises(UserError, match="no generator 'gdc'; did you mean gcd"):
        load_task("t", mixture(3, chain_sum={}, gdc={}))
    with pytest.raises(UserError, match="the generator chain_sum or gcd refuses its settings"):
        load_task("t", mixture(3, chain_sum={"config": {"min_terms": -1}}, gcd={}))

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

import pytest

from hacrl.config.schema import MathVerifier, ReasoningGymSource, Task
from hacrl.errors import UserError
from hacrl.tasks import load_prompts


def task(name: str = "chain_sum", **source: object) -> Task:
    return Task(source=ReasoningGymSource(name=name, **source), verifier=MathVerifier())


def test_problems_are_seeded_and_keep_their_metadata() -> None:
    prompts = load_prompts(task(size=5, seed=1, config={"min_terms": 2, "max_terms": 2}))
    assert [p.id for p in prompts] == [f"task/{i}" for i in range(5)]
    assert all(p.metadata["source_dataset"] == "chain_sum" for p in prompts)
    assert all(eval(str(p.metadata["expression"])) == int(p.gold) for p in prompts)
    assert prompts == load_prompts(task(size=5, seed=1, config={"min_terms": 2, "max_terms": 2}))
    assert prompts != load_prompts(task(size=5, seed=2, config={"min_terms": 2, "max_terms": 2}))


def test_unknown_generator() -> None:
    with pytest.raises(UserError, match="no generator 'chain_sums'; did you mean chain_sum"):
        load_prompts(task("chain_sums"))


@pytest.mark.parametrize("config", [{"terms": 3}, {"min_terms": -1}, {"min_terms": "three"}])
def test_bad_settings(config: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"task\.source\.config: the generator chain_sum") as caught:
        load_prompts(task(size=2, config=config))
    assert len(str(caught.value).splitlines()) <= 2

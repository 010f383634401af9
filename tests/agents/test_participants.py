"""Whatever takes part in a run keeps the same contract; only what learns keeps the second."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hacrl.agents.learning.algorithm import recipe_algorithm
from hacrl.agents.learning.reporting import LearnReport
from hacrl.agents.making import make_participant
from hacrl.agents.participant import LearningParticipant, Participant
from hacrl.agents.recorded import Recorded, prompt_key
from hacrl.agents.recording import Recording
from hacrl.config import Recipe, recipe_from_dict
from hacrl.fleet import LocalFleet
from hacrl.records import Decoding, Prompt, Rollout
from hacrl.tasks import load_prompts
from hacrl.training.loop import by_learner, joint_set
from hacrl.verify import make_pool
from hacrl.verify.rollouts import verify_rollouts

MakeRecipe = Callable[..., dict[str, Any]]
G = 3


@pytest.fixture(scope="module")
def recipe(tiny_recipe: MakeRecipe) -> Recipe:
    """kim learns, lee does not."""
    return recipe_from_dict(tiny_recipe(), ["agents.lee.learns=false", "clip.delta=0.9"])


@pytest.fixture(scope="module")
def prompts(recipe: Recipe) -> list[Prompt]:
    return load_prompts(recipe.tasks)[-4:]


def recording(prompts: list[Prompt], counts: list[int]) -> Recording:
    """With so many responses to each prompt."""
    one = Recorded(7, "1", -0.5, 2, True, None)
    by_prompt = {prompt_key(p): [one] * n for p, n in zip(prompts, counts, strict=True) if n}
    return Recording("old", "kim of runs/earlier", by_prompt, G)


@pytest.fixture(params=["kim", "lee", "old"])
def participant(
    request: pytest.FixtureRequest, recipe: Recipe, prompts: list[Prompt]
) -> Participant:
    if request.param == "old":
        return recording(prompts, [G, G - 1, 0, G])
    return make_participant(request.param, recipe)


def test_everybody_answers(participant: Participant, prompts: list[Prompt]) -> None:
    rollouts = participant.sample(prompts, G, occasion="step 0")
    assert rollouts
    assert rollouts == participant.sample(prompts, G, occasion="step 0")
    assert {r.agent for r in rollouts} == {participant.name}
    places = [(r.prompt, r.sample) for r in rollouts]
    assert places == sorted(set(places))
    assert {p for p, _ in places} <= set(range(len(prompts)))
    assert {s for _, s in places} <= set(range(G))
    assert all(r.logprob <= 0 and r.length >= 1 for r in rollouts)
    assert len(participant.prompt_lengths(prompts)) == len(prompts)
    assert participant.positions is None or participant.positions > 0
    participant.read(prompts)
    participant.close()


def test_only_what_learns_can_be_saved(participant: Participant) -> None:
    assert isinstance(participant, LearningParticipant) == (participant.name == "kim")
    if participant.name != "kim":
        assert not any(hasattr(participant, name) for name in ("learn", "save", "checkpoint"))


def test_a_model_that_does_not_learn_stays_as_it_is(recipe: Recipe) -> None:
    prompts = load_prompts(recipe.tasks)
    fleet = LocalFleet.from_recipe(recipe)
    assert fleet.agents == ("kim", "lee")
    assert fleet.learners == ("kim",)
    models = {name: agent._policy.model for name, agent in fleet._agents.items()}  # type: ignore[attr-defined]
    assert not any(p.requires_grad for p in models["lee"].parameters())
    assert all(p.requires_grad for p in models["kim"].parameters())
    before = {n: {k: v.clone() for k, v in m.state_dict().items()} for n, m in models.items()}
    sharing = {"kim": ("lee",)}
    with make_pool(recipe.tasks, recipe.verification) as verifiers:
        rollouts = fleet.sample(prompts, 8, occasion="step 0")
        pool = verify_rollouts(0, prompts, 8, rollouts, verifiers)
    judgement = recipe_algorithm(recipe).judge(joint_set(pool, [[1.0] * 2] * 2, sharing))
    (report,) = fleet.learn(pool, by_learner(judgement, pool.agents, sharing))
    assert report.metrics["sources"]["lee"]["teaching"] > 0
    same = {
        name: all(v.equal(before[name][k]) for k, v in model.state_dict().items())
        for name, model in models.items()
    }
    assert same == {"kim": False, "lee": True}
    assert all(p.grad is None for p in models["lee"].parameters())
    assert list(fleet.sample(prompts, 1, occasion="x", agents=fleet.learners)) == ["kim"]


def test_an_adapter_that_does_not_learn_shares_its_model_with_one_that_does(
    tiny_recipe: MakeRecipe, tmp_path: Path
) -> None:
    raw = tiny_recipe(clip={"delta": 0.9})
    raw["agents"]["kim"]["lora"] = {"rank": 2}
    LocalFleet.from_recipe(recipe_from_dict(raw)).save(tmp_path)
    twin = {**raw["agents"]["kim"], "learns": False, "lora": {"adapter": str(tmp_path / "kim")}}
    recipe = recipe_from_dict(raw | {"agents": {"kim": raw["agents"]["kim"], "twin": twin}})
    fleet = LocalFleet.from_recipe(recipe)
    kim, other = (agent._policy.model for agent in fleet._agents.values())  # type: ignore[attr-defined]
    assert kim is other
    before = {name: value.clone() for name, value in kim.state_dict().items()}
    prompts, sharing = load_prompts(recipe.tasks), {"kim": ("twin",)}
    with make_pool(recipe.tasks, recipe.verification) as verifiers:
        rollouts = fleet.sample(prompts, 8, occasion="step 0")
        pool = verify_rollouts(0, prompts, 8, rollouts, verifiers)
    judgement = recipe_algorithm(recipe).judge(joint_set(pool, [[1.0] * 2] * 2, sharing))
    fleet.learn(pool, by_learner(judgement, pool.agents, sharing))
    changed = {name for name, value in kim.state_dict().items() if not value.equal(before[name])}
    assert changed
    assert all(".kim." in name for name in changed)


def test_a_recording_gives_what_there_is(prompts: list[Prompt]) -> None:
    old = recording(prompts, [G, G - 1, 0, 1])
    places = [(r.prompt, r.sample) for r in old.sample(prompts, 2, occasion="any")]
    assert places == [(0, 0), (0, 1), (1, 0), (1, 1), (3, 0)]
    twice = [prompts[0], prompts[0]]
    assert [r.prompt for r in old.sample(twice, 1, occasion="any")] == [0, 1]
    (first, *_) = old.sample(prompts, 1, occasion="any")
    assert (first.text, first.logprob, first.length) == ("1", -0.5, 2)
    assert (first.policy_version, first.finished, first.unshareable) == (7, True, None)
    (note,) = old.read(prompts).notes
    assert note == (
        "agent old: kim of runs/earlier has answered 3 of 4 prompts, 2 of them fewer than 3 times"
    )
    with pytest.raises(ValueError, match="cannot draw"):
        old.sample(prompts, 1, occasion="x", decoding=Decoding(4, 4))


class Echo:
    """A participant of somebody else's: answers every prompt with its own text."""

    name = "echo"
    positions = None

    def prompt_lengths(self, prompts: Any) -> list[int]:
        return [0] * len(prompts)

    def read(self, prompts: Any) -> Any:
        raise AssertionError("is not asked here")

    def sample(self, prompts: Any, group_size: int, **how: Any) -> list[Rollout]:
        return [
            Rollout(p, self.name, s, 0, prompt.text, -1.0, 1, True)
            for p, prompt in enumerate(prompts)
            for s in range(group_size)
        ]

    def close(self) -> None: ...


class Parrot(Echo):
    """Also claims to learn."""

    name = "parrot"

    def learn(self, pool: Any, advantage: Any) -> LearnReport:
        return LearnReport(self.name, {"seen": len(pool.rows), "from": sorted(advantage)}, ())

    def save(self, folder: Path) -> None:
        folder.mkdir()

    checkpoint = restore = save


def test_a_fleet_holds_whatever_answers_or_learns(prompts: list[Prompt], tmp_path: Path) -> None:
    fleet = LocalFleet([Echo(), Parrot()])
    assert (fleet.agents, fleet.learners) == (("echo", "parrot"), ("parrot",))
    fleet.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["parrot"]
    rollouts = fleet.sample(prompts, 2, occasion="step 0")
    assert list(rollouts) == ["echo", "parrot"]

"""Records are plain values: they pickle, keep their order, and never hold a made-up reward."""

from __future__ import annotations

import math
import pickle

import pytest

from hacrl.records import Outcome, Pool, Prompt, Rollout, Verdict, Verified

PROMPT = Prompt("t/0", "t", "1+1=", "2")


def row(agent: str, prompt: int, sample: int, reward: float | None = 1.0) -> Verified:
    rollout = Rollout(prompt, agent, sample, 0, "2", -0.75, 2, True)
    return Verified(rollout, Verdict(reward, Outcome.RIGHT))


def pool() -> Pool:
    rows = tuple(
        row(agent, prompt, sample, None if (agent, prompt, sample) == ("b", 1, 0) else 1.0)
        for agent in "ab"
        for prompt in range(2)
        for sample in range(2)
    )
    # The same problem twice in a batch: two groups all the same.
    return Pool(3, ("a", "b"), (PROMPT, PROMPT), 2, rows)


def test_what_crosses_between_agents_pickles() -> None:
    assert pickle.loads(pickle.dumps(pool())) == pool()


def test_rewards_are_by_agent_prompt_and_sample_with_gaps() -> None:
    rewards = pool().rewards()
    assert rewards[0] == [[1.0, 1.0], [1.0, 1.0]]
    assert rewards[1][0] == [1.0, 1.0]
    assert math.isnan(rewards[1][1][0])
    assert rewards[1][1][1] == 1.0


def test_rows_of_one_agent() -> None:
    assert {r.rollout.agent for r in pool().of("b")} == {"b"}
    assert len(pool().of("b")) == 4


def test_a_pool_refuses_misplaced_rows() -> None:
    rows = pool().rows
    beyond = (row("a", 2, 0), row("a", 0, 2), row("c", 0, 0), row("a", -1, 0))
    for wrong in (rows[::-1], (*rows, rows[0]), (*rows, rows[-1]), *((one,) for one in beyond)):
        with pytest.raises(ValueError, match="one row per agent, prompt and sample"):
            Pool(3, ("a", "b"), (PROMPT, PROMPT), 2, wrong)


def test_a_pool_may_lack_rows() -> None:
    rows = [r for r in pool().rows if r.rollout.agent == "a" or r.rollout.sample == 1]
    ragged = Pool(3, ("a", "b", "c"), (PROMPT, PROMPT), 2, tuple(rows))
    assert [(r.rollout.prompt, r.rollout.sample) for r in ragged.of("b")] == [(0, 1), (1, 1)]
    assert ragged.of("c") == []
    known = [[[not math.isnan(x) for x in g] for g in own] for own in ragged.rewards()]
    assert known == [[[True] * 2] * 2, [[False, True]] * 2, [[False] * 2] * 2]
    assert pickle.loads(pickle.dumps(ragged)) == ragged


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_no_number_means_unscored(reward: float) -> None:
    assert Verdict(reward, Outcome.RIGHT).reward is None

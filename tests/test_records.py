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


def test_a_pool_refuses_missing_or_misplaced_rows() -> None:
    rows = pool().rows
    for wrong in (rows[:-1], rows[::-1], (*rows, rows[0])):
        with pytest.raises(ValueError, match="one row per agent, prompt and sample"):
            Pool(3, ("a", "b"), (PROMPT, PROMPT), 2, wrong)


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_no_number_means_unscored(reward: float) -> None:
    assert Verdict(reward, Outcome.RIGHT).reward is None

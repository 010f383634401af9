import itertools
import math
import statistics
from typing import Any, Literal

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from hacrl.algorithm.advantages import LIMIT, Advantages, Baselines, advantages, joint_baselines
from hacrl.algorithm.capability import capability_ratio
from tests.tolerances import assert_close

pytestmark = pytest.mark.numerics

NAN = math.nan
Baseline = Literal["source", "learner"]
BOTH: tuple[Baseline, ...] = ("source", "learner")
FLOAT32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
POSITIVE32 = st.floats(0.0, width=32, allow_nan=False, allow_infinity=False)


def omegas(capabilities: list[float]) -> Tensor:
    return torch.tensor(
        [[capability_ratio(k, j, 10.0) for j in capabilities] for k in capabilities],
        dtype=torch.float64,
    )


def everyone(n: int) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool)


def group(*agents: list[float]) -> Tensor:
    """Rewards [agents][1 prompt][samples]."""
    return torch.tensor(agents, dtype=torch.float64)[:, None, :]


def judge(
    rewards: Tensor, omega: Tensor, member: Tensor | None = None, **changes: Any
) -> Advantages:
    settings: dict[str, Any] = {
        "capability_aware": True,
        "discrepancy": True,
        "cross_baseline": "source",
        "guard": True,
        "epsilon": 0.0,
    }
    member = everyone(len(rewards)) if member is None else member
    return advantages(rewards, omega, member, **settings | changes)


def close(actual: Tensor, expected: Any) -> None:
    assert_close(actual, torch.as_tensor(expected, dtype=torch.float64), 100, dtype=torch.float64)


# Two agents, two samples: R(1) = 1, 0 and R(2) = 1, 1, with ω(1,2) = 0.8 and ω(2,1) = 1.25.
# μ̂(1) = (1 + 0 + 0.8·2) / 4 = 0.65; μ̂(2) = (1.25·1 + 2) / 4 = 0.8125 = 1.25·0.65.
# Joint mean 0.75, σ² = (3·0.25² + 0.75²) / 3 = 0.25, σ = 0.5 (biased it would be 0.433).
PAIR = group([1.0, 0.0], [1.0, 1.0])
OMEGA = torch.tensor([[1.0, 0.8], [1.25, 1.0]], dtype=torch.float64)


def test_baselines_and_spread_by_hand() -> None:
    b = joint_baselines(PAIR, OMEGA, everyone(2), guard=True)
    close(b.mean_KP, [[0.65], [0.8125]])
    close(b.std_KP, [[0.5], [0.5]])
    close(b.own_KP, [[0.5], [1.0]])
    assert b.signal_KP.tolist() == [[True], [True]]
    assert b.own_signal_KP.tolist() == [[True], [False]]
    assert b.guarded_KP.tolist() == [[False], [False]]


@pytest.mark.parametrize(
    ("changes", "to_first_from_second", "to_second_from_first"),
    [
        # Ã = ω(j,k)·A(j): 1.25·0.375; 0.8·(0.7, −1.3)
        ({}, [0.46875, 0.46875], [0.56, -1.04]),
        # Ã = ω(j,k)·(R − μ̂(k))/σ: 1.25·0.35/0.5; 0.8·(0.1875, −0.8125)/0.5
        ({"cross_baseline": "learner"}, [0.875, 0.875], [0.3, -1.3]),
        ({"discrepancy": False}, [0.375, 0.375], [0.7, -1.3]),
        ({"discrepancy": False, "cross_baseline": "learner"}, [0.7, 0.7], [0.375, -1.625]),
    ],
)
def test_advantages_of_peers_responses_by_hand(
    changes: dict[str, Any], to_first_from_second: list[float], to_second_from_first: list[float]
) -> None:
    value = judge(PAIR, OMEGA, **changes).value_KJPG[:, :, 0]
    close(value[0, 0], [0.7, -1.3])  # own: (1 − 0.65)/0.5, (0 − 0.65)/0.5
    close(value[1, 1], [0.375, 0.375])  # (1 − 0.8125)/0.5
    close(value[0, 1], to_first_from_second)
    close(value[1, 0], to_second_from_first)


@pytest.mark.parametrize("cross_baseline", BOTH)
def test_without_capability_awareness_the_baseline_is_the_plain_mean(
    cross_baseline: Baseline,
) -> None:
    a = judge(PAIR, OMEGA, capability_aware=False, cross_baseline=cross_baseline)
    close(a.baselines.mean_KP, [[0.75], [0.75]])
    # (1 − 0.75)/0.5 = 0.5, (0 − 0.75)/0.5 = −1.5; peers' rows still times ω(j,k)
    close(a.value_KJPG[0, :, 0], [[0.5, -1.5], [0.625, 0.625]])
    close(a.value_KJPG[1, :, 0], [[0.4, -1.2], [0.5, 0.5]])


@pytest.mark.parametrize("cross_baseline", BOTH)
def test_naive_sharing_gives_every_learner_the_same_advantages(cross_baseline: Baseline) -> None:
    a = judge(PAIR, OMEGA, capability_aware=False, discrepancy=False, cross_baseline=cross_baseline)
    close(a.value_KJPG[0, :, 0], [[0.5, -1.5], [0.5, 0.5]])
    close(a.value_KJPG[1], a.value_KJPG[0])


def test_epsilon_is_added_to_the_standard_deviation() -> None:
    value = judge(PAIR, OMEGA, epsilon=0.5).value_KJPG
    close(value[0, 0, 0], [0.35, -0.65])  # σ + ε = 1


def test_three_agents_and_two_prompts_by_hand() -> None:
    # Prompt 1: R = 1 0 | 1 1 | 0 0; prompt 2: R = 0 0 | 0 0 | 0 3. P̂ = 1 : 2 : 4.
    rewards = torch.tensor(
        [[[1.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 3.0]]]
    )
    b = joint_baselines(rewards, omegas([0.2, 0.4, 0.8]), everyone(3), guard=True)
    # μ̂(1) = (1 + 2/2)/6 = 1/3, times 2 and 4 for the others, where 4/3 > 1 is guarded: own mean 0
    # prompt 2: 3·(1/4, 1/2, 1)/6
    close(b.mean_KP, [[1 / 3, 0.125], [2 / 3, 0.25], [0.0, 0.5]])
    assert b.guarded_KP.tolist() == [[False, False], [False, False], [True, False]]
    # prompt 1: σ² = 6·0.25/5; prompt 2: mean 0.5, σ² = (5·0.25 + 6.25)/5 = 1.5
    close(b.std_KP, [[math.sqrt(0.3), math.sqrt(1.5)]] * 3)
    close(b.own_KP, [[0.5, 0.0], [1.0, 0.0], [0.0, 1.5]])
    assert b.own_signal_KP.tolist() == [[True, False], [False, False], [False, True]]


def reference(
    rewards: list[list[list[float]]],
    omega: list[list[float]],
    member: list[list[bool]],
    options: dict[str, Any],
) -> list[list[list[list[float]]]]:
    """Equations 8-10 literally, one number at a time."""
    n, prompts = len(rewards), len(rewards[0])
    scored = [[[r for r in g if not math.isnan(r)] for g in agent] for agent in rewards]

    def advantage(k: int, p: int, reward: float) -> float:
        joint = [r for j in range(n) if member[k][j] for r in scored[j][p]]
        if math.isnan(reward) or not joint or min(joint) == max(joint):
            return 0.0
        weight = omega[k] if options["capability_aware"] else [1.0] * n
        scaled = [weight[j] * r for j in range(n) if member[k][j] for r in scored[j][p]]
        mean = math.fsum(scaled) / len(joint)
        edges = (min(joint), max(joint))
        assume(all(abs(mean - edge) > 1e-9 * max(map(abs, edges)) for edge in edges))
        if options["guard"] and not edges[0] <= mean <= edges[1]:
            mean = statistics.fmean(scored[k][p] or joint)
        return (reward - mean) / (statistics.stdev(joint) + float(options["epsilon"]))

    def value(k: int, j: int, p: int, reward: float) -> float:
        if k == j:
            return advantage(k, p, reward)
        if not member[k][j]:
            return 0.0
        coefficient = omega[j][k] if options["discrepancy"] else 1.0
        return coefficient * advantage(j if options["cross_baseline"] == "source" else k, p, reward)

    return [
        [[[value(k, j, p, r) for r in rewards[j][p]] for p in range(prompts)] for j in range(n)]
        for k in range(n)
    ]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_advantages_are_the_equations_for_any_input(data: st.DataObject) -> None:
    n, prompts, samples = (data.draw(st.integers(1, most)) for most in (3, 2, 4))
    reward = st.one_of(st.sampled_from([0.0, 1.0, NAN]), st.integers(-8, 8).map(lambda i: i / 4))
    rewards = [
        [[data.draw(reward) for _ in range(samples)] for _ in range(prompts)] for _ in range(n)
    ]
    capabilities = [data.draw(st.floats(0.0, 1.0)) for _ in range(n)]
    member = [[k == j or data.draw(st.booleans()) for j in range(n)] for k in range(n)]
    options = {
        "capability_aware": data.draw(st.booleans()),
        "discrepancy": data.draw(st.booleans()),
        "cross_baseline": data.draw(st.sampled_from(BOTH)),
        "guard": data.draw(st.booleans()),
        "epsilon": data.draw(st.sampled_from([1e-6, 0.25])),
    }
    omega = omegas(capabilities)
    expected = reference(rewards, omega.tolist(), member, options)
    actual = judge(torch.tensor(rewards), omega, torch.tensor(member), **options).value_KJPG
    # Rewards of at most 2 by ratios of at most 10, twice, over deviations of a tenth or more.
    theirs = torch.tensor(expected, dtype=torch.float64)
    assert_close(actual, theirs, 12, magnitude=5e3, dtype=torch.float64)


# Reduction identities


@pytest.mark.parametrize("cross_baseline", BOTH)
def test_one_agent_is_gspo(cross_baseline: Baseline) -> None:
    a = judge(group([1.0, 0.0, 0.0, 0.5]), omegas([0.3]), cross_baseline=cross_baseline)
    # mean 0.375, σ² = (0.625² + 2·0.375² + 0.125²)/3 = 0.6875/3
    deviations = torch.tensor([0.625, -0.375, -0.375, 0.125], dtype=torch.float64)
    close(a.value_KJPG[0, 0, 0], deviations / math.sqrt(0.6875 / 3))


@pytest.mark.parametrize("capability_aware", [True, False])
@pytest.mark.parametrize("discrepancy", [True, False])
@pytest.mark.parametrize("cross_baseline", BOTH)
def test_learning_from_nobody_else_is_gspo_for_every_agent(
    capability_aware: bool, discrepancy: bool, cross_baseline: Baseline
) -> None:
    torch.manual_seed(0)
    rewards = torch.rand(3, 2, 4, dtype=torch.float64)
    together = judge(
        rewards,
        omegas([0.9, 0.1, 0.5]),
        torch.eye(3, dtype=torch.bool),
        capability_aware=capability_aware,
        discrepancy=discrepancy,
        cross_baseline=cross_baseline,
    ).value_KJPG
    for k in range(3):
        alone = judge(rewards[k : k + 1], omegas([0.7])).value_KJPG[0, 0]
        close(together[k, k], alone)
        others = [j for j in range(3) if j != k]
        assert not together[k, others].any()


@given(
    rewards=st.lists(
        st.lists(st.integers(0, 8).map(lambda i: i / 8), min_size=4, max_size=4),
        min_size=1,
        max_size=4,
    )
)
def test_identical_agents_have_the_plain_group_mean(rewards: list[list[float]]) -> None:
    n = len(rewards)
    b = joint_baselines(group(*rewards), omegas([0.4] * n), everyone(n), guard=True)
    plain = sum(map(sum, rewards)) / (4 * n)  # eighths: the sum is exact
    assert b.mean_KP.flatten().tolist() == [plain] * n
    assert not b.guarded_KP.any()


@given(
    capabilities=st.lists(st.floats(0.1, 1.0), min_size=1, max_size=4),
    seed=st.integers(0, 999),
)
def test_baselines_of_two_agents_differ_by_their_ratio(
    capabilities: list[float], seed: int
) -> None:
    n, omega = len(capabilities), omegas(capabilities)
    rewards = torch.rand(n, 2, 3, generator=torch.Generator().manual_seed(seed))
    mean_KP = joint_baselines(rewards, omega, everyone(n), guard=False).mean_KP
    for k, j in itertools.product(range(n), repeat=2):
        close(mean_KP[k], omega[k, j] * mean_KP[j])


def test_baselines_of_a_pair_differ_by_their_ratio_also_where_it_is_clamped() -> None:
    omega = omegas([0.9, 0.01])
    mean_KP = joint_baselines(PAIR, omega, everyone(2), guard=False).mean_KP
    close(mean_KP[0] / mean_KP[1], [10.0])


def test_baseline_is_the_agents_own_expectation_when_the_ratio_is_true() -> None:
    # Theorem 4.1: agent 1 gets a quarter right and agent 2 three quarters, as everywhere.
    rewards = group([1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0])
    b = joint_baselines(rewards, omegas([0.25, 0.75]), everyone(2), guard=True)
    close(b.mean_KP, [[0.25], [0.75]])
    close(b.own_KP, b.mean_KP)


@settings(max_examples=100, deadline=None)
@given(
    data=st.data(),
    n=st.integers(1, 4),
    cross_baseline=st.sampled_from(BOTH),
    guard=st.booleans(),
)
def test_permuting_agents_permutes_the_advantages(
    data: st.DataObject, n: int, cross_baseline: Baseline, guard: bool
) -> None:
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 999)))
    rewards = torch.rand(n, 2, 3, generator=generator)
    omega = omegas([data.draw(st.floats(0.05, 1.0)) for _ in range(n)])
    member = torch.tensor(
        [[k == j or data.draw(st.booleans()) for j in range(n)] for k in range(n)]
    )
    order = torch.tensor(data.draw(st.permutations(range(n))))
    options: dict[str, Any] = {"cross_baseline": cross_baseline, "guard": guard}
    plain = judge(rewards, omega, member, **options)
    permuted = judge(rewards[order], omega[order][:, order], member[order][:, order], **options)
    close(permuted.value_KJPG, plain.value_KJPG[order][:, order])
    for field in Baselines.__dataclass_fields__:
        expected = getattr(plain.baselines, field)[order]
        found = getattr(permuted.baselines, field)
        assert_close(found, expected, 100, dtype=torch.float64, equal_nan=True)


@given(
    n=st.integers(1, 3),
    reward=FLOAT32,
    unscored=st.integers(0, 5),
    guard=st.booleans(),
    cross_baseline=st.sampled_from(BOTH),
)
def test_equal_rewards_give_exactly_zero_whatever_the_ratio(
    n: int, reward: float, unscored: int, guard: bool, cross_baseline: Baseline
) -> None:
    rewards = torch.full((n, 1, 6), reward)
    rewards[0, 0, :unscored] = NAN
    omega = omegas([0.9, 0.05, 0.3][:n])
    a = judge(rewards, omega, guard=guard, cross_baseline=cross_baseline, epsilon=1e-6)
    assert torch.equal(a.value_KJPG, torch.zeros(n, n, 1, 6, dtype=torch.float64))
    assert not a.baselines.signal_KP.any()
    assert not a.baselines.guarded_KP.any()


# The guard. Capabilities 0.9 and 0.1; the strong agent gets 1 of 4, the weak one all right.
# ω(strong, weak) = 9: μ̂(strong) = (1 + 9·4)/8 = 4.625 > 1.
# μ̂(weak) = (1/9 + 4)/8 = 37/72. σ² = 8·(5/8)(3/8)/7.
UPSET = group([1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0])
UPSET_OMEGA = omegas([0.9, 0.1])
UPSET_STD = math.sqrt(15 / 8 / 7)


def test_a_baseline_above_every_reward_is_replaced_by_the_own_mean() -> None:
    a = judge(UPSET, UPSET_OMEGA)
    close(a.baselines.mean_KP, [[0.25], [37 / 72]])
    assert a.baselines.guarded_KP.tolist() == [[True], [False]]
    strong = [0.75 / UPSET_STD, *[-0.25 / UPSET_STD] * 3]
    weak = [(1 - 37 / 72) / UPSET_STD] * 4
    close(a.value_KJPG[0, 0, 0], strong)
    close(a.value_KJPG[1, 1, 0], weak)
    close(a.value_KJPG[0, 1, 0], [w / 9 for w in weak])
    close(a.value_KJPG[1, 0, 0], [9 * s for s in strong])


def test_without_the_guard_a_correct_answer_would_be_punished() -> None:
    a = judge(UPSET, UPSET_OMEGA, guard=False)
    close(a.baselines.mean_KP, [[4.625], [37 / 72]])
    assert not a.baselines.guarded_KP.any()
    close(a.value_KJPG[0, 0, 0, 0], -3.625 / UPSET_STD)


@pytest.mark.parametrize("cross_baseline", BOTH)
@pytest.mark.parametrize("discrepancy", [True, False])
def test_with_the_guard_no_correct_answer_is_punished(
    cross_baseline: Baseline, discrepancy: bool
) -> None:
    a = judge(UPSET, UPSET_OMEGA, cross_baseline=cross_baseline, discrepancy=discrepancy)
    correct = (UPSET == 1).expand(2, -1, -1, -1)
    assert (a.value_KJPG[correct] > 0).all()


def test_a_baseline_below_every_reward_is_replaced_likewise() -> None:
    rewards = group([0.5, 0.5], [0.5, 1.0])
    omega = omegas([0.9, 0.1])
    a = judge(rewards, omega)
    # μ̂(weak) = (1/9 + 1.5)/4 = 0.40278 < 0.5; μ̂(strong) = (1 + 9·1.5)/4 = 3.625 > 1
    close(a.baselines.mean_KP, [[0.5], [0.75]])
    assert a.baselines.guarded_KP.tolist() == [[True], [True]]
    assert a.value_KJPG[1, 1, 0, 0] < 0
    off = judge(rewards, omega, guard=False)
    close(off.baselines.mean_KP, [[3.625], [(1 / 9 + 1.5) / 4]])
    assert off.value_KJPG[1, 1, 0, 0] > 0  # the worst answer would be rewarded


def test_the_guard_acts_on_one_prompt_and_leaves_the_others() -> None:
    rewards = torch.cat([UPSET, group([1.0] * 4, [0.0] * 4)], dim=1)
    b = joint_baselines(rewards, UPSET_OMEGA, everyone(2), guard=True)
    assert b.guarded_KP.tolist() == [[True, False], [False, False]]
    close(b.mean_KP[:, 1], [0.5, 4 / 9 / 8])


def test_the_guard_of_an_unscored_learner_takes_the_plain_mean() -> None:
    b = joint_baselines(group([NAN, NAN], [1.0, 0.5]), UPSET_OMEGA, everyone(2), guard=True)
    # μ̂(strong) = 9·1.5/2 > 1, and there is no own mean
    close(b.mean_KP[0], [0.75])
    assert b.guarded_KP.tolist() == [[True], [False]]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_baseline_equal_to_the_best_reward_is_not_above_it_in_any_order(
    order: tuple[int, ...],
) -> None:
    # Everybody gets one of two right. ω(1,·) = 1, 5/3, 10/3 → μ̂(1) = 6/6 = the best reward.
    # Rounding lifts the sum above 1 in some orders, which must neither fire the guard nor show.
    capabilities = [0.625, 0.375, 0.1875]
    rewards, omega = group(*[[1.0, 0.0]] * 3), omegas([capabilities[i] for i in order])
    a = judge(rewards, omega)
    assert not a.baselines.guarded_KP.any()
    close(a.baselines.mean_KP[order.index(0)], [1.0])
    assert (a.value_KJPG[..., 0] >= 0).all()


def draw_rewards(data: st.DataObject, rewards: st.SearchStrategy[float]) -> Tensor:
    n, samples = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    cell = st.one_of(rewards, st.sampled_from([0.0, 1.0, NAN]))
    row = st.lists(cell, min_size=samples, max_size=samples)
    return torch.tensor(data.draw(st.lists(row, min_size=n, max_size=n)))[:, None, :]


@settings(max_examples=200, deadline=None)
@given(
    data=st.data(),
    cross_baseline=st.sampled_from(BOTH),
    rewards=st.sampled_from([FLOAT32, POSITIVE32, st.floats(-2.0, 2.0, width=32)]),
    discrepancy=st.booleans(),
)
def test_guarded_advantages_are_finite_and_neither_punish_the_best_nor_reward_the_worst(
    data: st.DataObject,
    cross_baseline: Baseline,
    rewards: st.SearchStrategy[float],
    discrepancy: bool,
) -> None:
    rewards_JPG = draw_rewards(data, rewards)
    omega = omegas([data.draw(st.floats(0.0, 1.0)) for _ in rewards_JPG])
    a = judge(
        rewards_JPG, omega, cross_baseline=cross_baseline, discrepancy=discrepancy, epsilon=1e-6
    )
    value = a.value_KJPG
    assert value.isfinite().all()
    assert a.baselines.std_KP.isfinite().all()
    scored = rewards_JPG[~rewards_JPG.isnan()]
    assume(len(scored))
    assert (value[:, rewards_JPG == scored.max()] >= 0).all()
    assert (value[:, rewards_JPG == scored.min()] <= 0).all()


@settings(max_examples=100, deadline=None)
@given(data=st.data(), guard=st.booleans())
def test_the_sign_of_an_advantage_is_that_of_reward_less_baseline(
    data: st.DataObject, guard: bool
) -> None:
    rewards = draw_rewards(data, FLOAT32).double()
    n = len(rewards)
    omega = omegas([data.draw(st.floats(0.0, 1.0)) for _ in range(n)])
    by_baseline = {
        c: judge(rewards, omega, guard=guard, cross_baseline=c, epsilon=1e-6) for c in BOTH
    }
    for cross_baseline, a in by_baseline.items():
        mean, signal = a.baselines.mean_KP[:, 0], a.baselines.signal_KP[:, 0]
        for k, j in itertools.product(range(n), repeat=2):
            whose = j if cross_baseline == "source" else k
            above = (rewards[j, 0] - mean[whose]).sign().nan_to_num() * signal[whose]
            assert torch.equal(a.value_KJPG[k, j, 0].sign(), above)


# Unscored rewards and degenerate groups


@pytest.mark.parametrize("cross_baseline", BOTH)
def test_an_unscored_response_counts_as_if_it_did_not_exist(cross_baseline: Baseline) -> None:
    with_gaps = group([1.0, NAN, 0.0], [0.25, 1.0, NAN])
    without = group([1.0, 0.0], [0.25, 1.0])
    gaps = judge(with_gaps, OMEGA, cross_baseline=cross_baseline)
    plain = judge(without, OMEGA, cross_baseline=cross_baseline)
    scored = ~with_gaps[:, 0].isnan()
    for k in range(2):
        close(gaps.value_KJPG[k, :, 0][scored], plain.value_KJPG[k, :, 0].flatten())
        assert not gaps.value_KJPG[k, :, 0][~scored].any()
    for field in Baselines.__dataclass_fields__:
        close(getattr(gaps.baselines, field), getattr(plain.baselines, field))


def test_an_unscored_response_is_not_a_zero_in_the_mean() -> None:
    b = joint_baselines(group([1.0, NAN], [0.0, NAN]), omegas([1.0, 1.0]), everyone(2), guard=True)
    close(b.mean_KP, [[0.5], [0.5]])
    close(b.std_KP, [[math.sqrt(0.5)], [math.sqrt(0.5)]])


@pytest.mark.parametrize(
    "rewards", [[NAN] * 8, [NAN] * 7 + [1.0], [1.0] + [NAN] * 7, [-2.5] + [NAN] * 7]
)
def test_fewer_than_two_scored_responses_give_zero(rewards: list[float]) -> None:
    a = judge(group(rewards), omegas([0.5]))
    assert torch.equal(a.value_KJPG, torch.zeros(1, 1, 1, 8, dtype=torch.float64))
    assert a.baselines.std_KP.tolist() == [[0.0]]
    assert a.baselines.signal_KP.tolist() == [[False]]


@pytest.mark.parametrize("cross_baseline", BOTH)
def test_an_unscored_group_leaves_the_other_prompts_and_agents_alone(
    cross_baseline: Baseline,
) -> None:
    rewards = torch.cat([group([NAN, NAN], [NAN, NAN]), group([NAN, NAN], [1.0, 0.0]), PAIR], dim=1)
    a = judge(rewards, OMEGA, cross_baseline=cross_baseline)
    assert a.value_KJPG.isfinite().all()
    assert not a.value_KJPG[:, :, 0].any()
    assert not a.value_KJPG[:, 0, 1].any()
    # prompt 2 of the second agent: mean 0.5, σ = √0.5
    close(a.value_KJPG[1, 1, 1], [math.sqrt(0.5), -math.sqrt(0.5)])
    close(a.value_KJPG[:, :, 2:], judge(PAIR, OMEGA, cross_baseline=cross_baseline).value_KJPG)


def test_the_own_mean_of_an_unscored_group_is_unknown() -> None:
    b = joint_baselines(group([NAN, NAN], [1.0, 0.0]), OMEGA, everyone(2), guard=True)
    assert b.own_KP[0].isnan().all()
    close(b.own_KP[1], [0.5])


def test_right_answers_are_above_the_joint_baseline_of_a_partner_always_wrong() -> None:
    # capabilities 0.8 and 0 → ω(1,2) = 10, ω(2,1) = 0.1. μ̂ = 2/4 and 0.1·2/4; σ² = 4·0.25/3
    a = judge(group([1.0, 1.0], [0.0, 0.0]), omegas([0.8, 0.0]))
    std = math.sqrt(1 / 3)
    close(a.baselines.mean_KP, [[0.5], [0.05]])
    close(a.value_KJPG[0, 0, 0], [0.5 / std] * 2)
    close(a.value_KJPG[1, 1, 0], [-0.05 / std] * 2)
    close(a.value_KJPG[1, 0, 0], [10 * 0.5 / std] * 2)
    close(a.value_KJPG[0, 1, 0], [0.1 * -0.05 / std] * 2)
    assert a.baselines.own_signal_KP.tolist() == [[False], [False]]
    assert a.baselines.signal_KP.tolist() == [[True], [True]]


def test_only_those_that_a_learner_learns_from_are_in_its_joint_set() -> None:
    # 1 learns from 2; 2 learns from nobody. μ̂(1) = 0.65 and σ = 0.5 as above; 2's own rewards are
    # equal, so A(2) = 0 and so is what 1 gets from it under `source`.
    member = torch.tensor([[True, True], [False, True]])
    source = judge(PAIR, OMEGA, member).value_KJPG[:, :, 0]
    close(source[0], [[0.7, -1.3], [0.0, 0.0]])
    close(source[1], [[0.0, 0.0], [0.0, 0.0]])
    learner = judge(PAIR, OMEGA, member, cross_baseline="learner").value_KJPG[:, :, 0]
    close(learner[0], [[0.7, -1.3], [0.875, 0.875]])
    close(learner[1], [[0.0, 0.0], [0.0, 0.0]])


def test_a_small_spread_upon_a_large_reward_is_not_lost() -> None:
    a = judge(group([1e9, 1e9 + 1, 1e9, 1e9 + 1]), omegas([1.0]))
    close(a.baselines.std_KP, [[math.sqrt(1 / 3)]])
    close(a.value_KJPG[0, 0, 0], [s * 0.5 / math.sqrt(1 / 3) for s in (-1, 1, -1, 1)])


def test_advantages_of_a_group_do_not_depend_on_the_scale_of_the_rewards() -> None:
    plain = judge(UPSET, UPSET_OMEGA).value_KJPG
    close(judge(UPSET * 1e30, UPSET_OMEGA).value_KJPG, plain)
    close(judge(UPSET * 1e-30, UPSET_OMEGA).value_KJPG, plain)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e6])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6])
@pytest.mark.parametrize("guard", [True, False])
def test_rewards_that_differ_by_rounding_are_equal(
    guard: bool, epsilon: float, scale: float
) -> None:
    same = [0.1 + 0.2, 0.3, sum([0.1] * 3), 0.15 + 0.15]
    assert len(set(same)) > 1
    a = judge(group([one * scale for one in same]), omegas([1.0]), guard=guard, epsilon=epsilon)
    assert not a.baselines.signal_KP.any()
    assert not a.baselines.own_signal_KP.any()
    assert a.value_KJPG.abs().max() == 0


@pytest.mark.parametrize("guard", [True, False])
@given(data=st.data())
def test_no_advantage_is_beyond_the_limit(guard: bool, data: st.DataObject) -> None:
    """Also where a tiny spread meets a baseline far from it."""
    values = st.sampled_from([0.0, 1.0, 1.0 + 1e-11, 1.0 + 1e-7, 1e6, 5e-324, 1e-9]) | st.floats(
        0, 1
    )
    rewards = torch.tensor(
        [[data.draw(st.lists(values, min_size=4, max_size=4))] for _ in range(2)],
        dtype=torch.float64,
    )
    ratio = data.draw(st.sampled_from([1.0, 3.0, 10.0, 1e6]))
    omega = torch.tensor([[1.0, ratio], [1 / ratio, 1.0]], dtype=torch.float64)
    a = judge(
        rewards,
        omega,
        guard=guard,
        epsilon=data.draw(st.sampled_from([0.0, 1e-6])),
        discrepancy=False,
    ).value_KJPG
    assert a.isfinite().all()
    assert a.abs().max() <= LIMIT
    if guard:  # the baseline is among the rewards, whose σ is at least range / √(2(n−1))
        assert a.abs().max() <= math.sqrt(2 * (rewards.numel() - 1)) * (1 + 1e-6)


def test_without_the_guard_a_tiny_spread_far_from_the_baseline_meets_the_limit() -> None:
    rewards = torch.tensor([[[1.0, 1.0 + 1e-8]], [[1.0, 1.0]]], dtype=torch.float64)
    omega = torch.tensor([[1.0, 10.0], [0.1, 1.0]], dtype=torch.float64)
    for epsilon in (0.0, 1e-6):
        a = judge(rewards, omega, guard=False, discrepancy=False, epsilon=epsilon).value_KJPG
        assert a[0, 0].tolist() == [[-LIMIT, -LIMIT]]

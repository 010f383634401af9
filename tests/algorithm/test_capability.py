import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hacrl.algorithm.capability import CapabilityTracker, capability_ratio, observed_capability

NAN = math.nan
CAPABILITIES = st.one_of(st.none(), st.floats(0.0, 1e30), st.floats(0.0, 1.0))


def tracker(agents: str = "ab", window: int = 5, max_ratio: float = 10.0) -> CapabilityTracker:
    return CapabilityTracker(list(agents), window, "mean_reward", max_ratio)


def test_capability_is_the_mean_over_the_whole_batch_of_scored_rewards() -> None:
    assert observed_capability([1.0, 0.0, NAN, 0.5], "mean_reward") == 0.5  # 1.5 / 3
    assert observed_capability([0.0], "mean_reward") == 0.0


def test_positive_rate_is_the_share_of_scored_rewards_above_zero() -> None:
    assert observed_capability([-3.0, 2.0, 0.0, NAN, 0.1], "positive_rate") == 0.5  # 2 of 4


@pytest.mark.parametrize("metric", ["mean_reward", "positive_rate"])
@pytest.mark.parametrize("rewards", [[], [NAN], [NAN, NAN]])
def test_capability_is_unknown_where_nothing_is_scored(rewards: list[float], metric: str) -> None:
    assert observed_capability(rewards, metric) is None  # type: ignore[arg-type]


def test_a_negative_reward_is_refused_with_the_alternative_named() -> None:
    with pytest.raises(ValueError, match="positive_rate"):
        observed_capability([1.0, -0.5], "mean_reward")


@pytest.mark.parametrize(
    ("p_k", "p_j", "omega"),
    [
        (0.6, 0.3, 2.0),
        (0.3, 0.6, 0.5),
        (0.7, 0.7, 1.0),
        (0.9, 0.1, 9.0),
        (0.9, 0.05, 10.0),  # 18 limited
        (0.05, 0.9, 0.1),  # 1/18 limited
        (0.5, 0.0, 10.0),  # infinity limited
        (0.0, 0.5, 0.1),
        (0.0, 0.0, 1.0),
        (1e-320, 0.0, 10.0),  # subnormal over zero
        (1e300, 1e-300, 10.0),  # the quotient overflows
        (None, 0.5, 1.0),
        (0.5, None, 1.0),
        (None, None, 1.0),
        (0.0, None, 1.0),
    ],
)
def test_ratio_of_two_capabilities(p_k: float | None, p_j: float | None, omega: float) -> None:
    assert capability_ratio(p_k, p_j, 10.0) == pytest.approx(omega, rel=1e-12)


def test_the_limit_of_the_ratio_is_a_setting() -> None:
    assert capability_ratio(0.9, 0.1, 4.0) == 4.0
    assert capability_ratio(0.1, 0.9, 4.0) == 0.25
    assert capability_ratio(0.9, 0.1, 1.0) == 1.0


@given(p_k=CAPABILITIES, p_j=CAPABILITIES, max_ratio=st.sampled_from([1.0, 3.0, 10.0]))
def test_the_two_directions_of_a_ratio_multiply_to_one(
    p_k: float | None, p_j: float | None, max_ratio: float
) -> None:
    forth, back = capability_ratio(p_k, p_j, max_ratio), capability_ratio(p_j, p_k, max_ratio)
    assert forth * back == pytest.approx(1.0, rel=1e-15)
    assert 1.0 / max_ratio <= forth <= max_ratio


@given(p_k=st.floats(0.1, 1.0), p_j=st.floats(0.1, 1.0))
def test_within_the_limit_the_ratio_is_the_quotient(p_k: float, p_j: float) -> None:
    assert capability_ratio(p_k, p_j, 10.0) == pytest.approx(p_k / p_j, rel=1e-14)


def test_a_batch_mean_is_not_a_mean_of_group_means() -> None:
    t = tracker("a")
    t.observe([[[1.0, 1.0], [0.0, NAN]]])
    assert t.estimates() == [pytest.approx(2 / 3, rel=1e-15)]  # group means would give 0.5


def test_window_is_what_exists_and_then_the_last_steps_the_current_one_included() -> None:
    t = tracker("a", window=3)
    seen = []
    for reward in [0.0, 1.0, 0.5, 0.25, 0.75]:
        t.observe([[[reward]]])
        seen.append(t.estimates()[0])
    # 0 | 1/2 | 1.5/3 | (1 + .5 + .25)/3 | (.5 + .25 + .75)/3
    assert seen == pytest.approx([0.0, 0.5, 0.5, 1.75 / 3, 0.5], rel=1e-15)


def test_a_window_of_one_is_the_current_step_alone() -> None:
    t = tracker("a", window=1)
    for reward in [1.0, 0.25]:
        t.observe([[[reward]]])
    assert t.estimates() == [0.25]


def test_the_window_averages_steps_not_responses() -> None:
    t = tracker("a")
    t.observe([[[1.0, 1.0, 1.0]]])
    t.observe([[[0.0, NAN, NAN]]])
    assert t.estimates() == [0.5]  # over responses it would be 3/4


def test_ratios_of_three_agents_are_learner_by_source() -> None:
    t = tracker("abc")
    t.observe([[[1.0, 0.0]], [[1.0, 1.0]], [[0.0, 0.0]]])  # P̂ = 1/2, 1, 0
    assert t.ratios() == [[1.0, 0.5, 10.0], [2.0, 1.0, 10.0], [0.1, 0.1, 1.0]]


def test_ratios_are_those_of_window_means_not_means_of_ratios() -> None:
    t = tracker()
    t.observe([[[0.2]], [[0.8]]])
    t.observe([[[1.0]], [[0.5]]])
    # 0.6 / 0.65; the mean of 0.25 and 2 would be 1.125
    assert t.ratios()[0][1] == pytest.approx(0.6 / 0.65, rel=1e-15)


def test_before_anything_is_scored_estimates_are_unknown_and_ratios_one() -> None:
    t = tracker()
    assert t.estimates() == [None, None]
    assert t.ratios() == [[1.0, 1.0], [1.0, 1.0]]
    t.observe([[[NAN, NAN]], [[0.5, NAN]]])
    assert t.estimates() == [None, 0.5]
    assert t.ratios() == [[1.0, 1.0], [1.0, 1.0]]


def test_a_single_agent_has_ratio_one() -> None:
    t = tracker("a")
    t.observe([[[0.0, 0.0]]])
    assert t.ratios() == [[1.0]]


def test_an_unscored_step_does_not_lengthen_the_window() -> None:
    t = tracker("a", window=2)
    for reward in [1.0, 0.0, NAN]:
        t.observe([[[reward]]])
    # Eq. 6 averages over the last K steps: of the last two only the second has a value.
    assert t.estimates() == [0.0]


@given(
    rewards=st.lists(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3), max_size=7),
    order=st.permutations(range(3)),
)
def test_permuting_agents_permutes_the_ratios(rewards: list[list[float]], order: list[int]) -> None:
    plain, permuted = tracker("abc"), tracker("".join("abc"[i] for i in order))
    for step in rewards:
        plain.observe([[[r]] for r in step])
        permuted.observe([[[step[i]]] for i in order])
    assert permuted.estimates() == [plain.estimates()[i] for i in order]
    assert permuted.ratios() == [[plain.ratios()[k][j] for j in order] for k in order]


def test_a_restored_tracker_continues_as_if_never_stopped() -> None:
    through, before, after = tracker(window=3), tracker(window=3), tracker(window=3)
    steps = [[[[1.0]], [[0.25]]], [[[0.5]], [[0.75]]], [[[0.0]], [[0.5]]], [[[1.0]], [[1.0]]]]
    for step in steps:
        through.observe(step)
    for step in steps[:2]:
        before.observe(step)
    after.observe([[[0.9]], [[0.9]]])  # to be forgotten
    after.restore(json.loads(json.dumps(before.state())))
    assert after.estimates() == before.estimates() == [0.75, 0.5]
    for step in steps[2:]:
        after.observe(step)
    assert after.estimates() == through.estimates() == [0.5, 0.75]  # of the last three steps
    assert after.state() == through.state()


def test_state_is_a_snapshot_by_name() -> None:
    t = tracker()
    t.observe([[[1.0]], [[0.5]]])
    state = t.state()
    t.observe([[[0.0]], [[0.0]]])
    assert state == {"a": [1.0], "b": [0.5]}
    swapped = tracker("ba")
    swapped.restore(state)
    assert swapped.estimates() == [0.5, 1.0]


def test_an_agent_missing_from_the_state_is_an_error() -> None:
    with pytest.raises(KeyError, match="b"):
        tracker().restore({"a": [1.0]})


def test_who_misses_a_step_keeps_its_window() -> None:
    t = CapabilityTracker(("a", "b", "c"), 2, "mean_reward", 10.0)
    t.observe([[[1.0]], [[0.5]], [[0.25]]])
    t.observe([[[0.0]], [[0.75]]], ["c", "a"])
    assert t.estimates() == [0.875, 0.5, 0.125]
    assert t.estimates(["c", "b"]) == [0.125, 0.5]
    assert t.ratios(["c", "b"]) == [[1.0, 0.25], [4.0, 1.0]]
    with pytest.raises(ValueError, match="shorter"):
        t.observe([[[1.0]]], ["a", "b"])

import math
from collections.abc import Sequence
from typing import Any, Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from hacrl.algorithm.advantages import advantages
from hacrl.algorithm.objective import (
    Rows,
    SequenceLevel,
    Terms,
    TokenLevel,
    kl_term,
    limited_ratio,
    sequence_log_ratio,
    stepwise_bounds,
)
from tests import tolerances

pytestmark = pytest.mark.numerics

E = math.e
DOUBLE = torch.float64
Clip = Literal["stepwise", "own", "none"]
CLIPS: tuple[Clip, ...] = ("stepwise", "own", "none")


def tensor(values: Any, dtype: torch.dtype = DOUBLE) -> Tensor:
    return torch.tensor(values, dtype=dtype)


def close(actual: Tensor, expected: Any, terms: int = 100, dtype: torch.dtype = DOUBLE) -> None:
    """Equal up to the rounding of a sum, by default of the few double numbers of a test."""
    expected = torch.as_tensor(expected, dtype=DOUBLE).expand(actual.shape)
    tolerances.assert_close(actual, expected, terms, dtype=dtype)


def rows(
    logprobs: Sequence[Sequence[float]],
    old: Sequence[float] | Sequence[Sequence[float]],
    advantage: Sequence[float],
    own: Sequence[bool] | None = None,
    old_length: Sequence[int] | None = None,
    dtype: torch.dtype = DOUBLE,
) -> Rows:
    """Rows padded to the longest; `old` are sums or tokens; own, of equal length, if not said."""
    lengths = [len(r) for r in logprobs]
    width = max(lengths)

    def padded(values: Sequence[Sequence[float]]) -> Tensor:
        return tensor([[*r, *[0.0] * (width - len(r))] for r in values], dtype)

    tokens = [list(o) for o in old if isinstance(o, Sequence)]
    sums = [math.fsum(o) if isinstance(o, Sequence) else o for o in old]
    return Rows(
        logprob_RT=padded(logprobs).requires_grad_(),
        mask_RT=torch.arange(width) < torch.tensor(lengths)[:, None],
        old_logprob_R=tensor(sums, dtype),
        old_length_R=tensor(old_length or lengths, dtype),
        advantage_R=tensor(advantage, dtype),
        own_R=torch.tensor(own or [True] * len(lengths)),
        old_logprob_RT=padded(tokens) if tokens else None,
    )


def terms(batch: Rows, *, level: str = "sequence", update: int = 0, **changes: Any) -> Terms:
    """Own clip [0.8, 1.28]; peers' clip [0.8, 1] at first, rising by 0.025; no reweighting."""
    if level == "token":
        changes.pop("alpha", None)  # is of peers' rows
        return TokenLevel(**{"own_clip": (0.2, 0.28)} | changes)(batch, update)
    options: dict[str, Any] = {"own_clip": (0.2, 0.28), "alpha": 0.0}
    return SequenceLevel(**options | changes)(batch, update)


def of_ratios(ratio: Tensor, advantage: Tensor, *, own: bool) -> Rows:
    """Rows of one token that have these ratios."""
    return Rows(
        logprob_RT=ratio.reshape(-1, 1).log(),
        mask_RT=torch.ones(ratio.numel(), 1, dtype=torch.bool),
        old_logprob_R=torch.zeros_like(advantage.reshape(-1)),
        old_length_R=torch.ones_like(advantage.reshape(-1)),
        advantage_R=advantage.reshape(-1),
        own_R=torch.full((ratio.numel(),), own),
    )


def gradient(batch: Rows, **changes: Any) -> Tensor:
    """Of the sum of all terms, by token; padding is a constant 0 by the contract of `Rows`."""
    value = terms(batch, **changes).value_R.sum()
    return torch.autograd.grad(value, batch.logprob_RT)[0] * batch.mask_RT


# The ratio


def test_log_ratio_under_both_conventions_of_length() -> None:
    # source: (−6 + 4)/2; own: −6/3 + 4/2
    arguments = tensor([-6.0]), tensor([-4.0]), tensor([3.0]), tensor([2.0])
    close(sequence_log_ratio(*arguments, "source"), [-1.0])
    close(sequence_log_ratio(*arguments, "own"), [0.0])


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("length", ["source", "own"])
def test_a_constant_offset_gives_the_same_ratio_at_any_length(own: bool, length: str) -> None:
    batch = rows(
        [[-0.99] * n for n in (10, 1000)],
        [-10.0, -1000.0],
        [1.0, 1.0],
        [own] * 2,
        dtype=torch.float32,
    )
    t = terms(batch, length=length, cross_clip="none")
    close(t.value_R, math.exp(0.01), 1000, torch.float32)  # a sum would give 1.1 and 22026
    close(t.log_ratio_R, 0.01, 1000, torch.float32)  # hundredths of nats out of a thousand


@pytest.mark.parametrize("level", ["sequence", "token"])
def test_rows_of_any_length_contribute_equally(level: str) -> None:
    old = [[-1.0] * 10, [-1.0] * 1000]
    batch = rows([[-0.9] * 10, [-0.9] * 1000], old, [2.0, 2.0])
    close(terms(batch, level=level).value_R, 2 * math.exp(0.1))
    close(gradient(batch, level=level).sum(dim=1), 2 * math.exp(0.1))


@pytest.mark.parametrize("level", ["sequence", "token"])
def test_an_unchanged_policy_has_ratio_one_and_is_not_clipped(level: str) -> None:
    logprobs = [[-1.0, -2.0], [-0.5, -0.25, -4.0]]
    batch = rows(logprobs, logprobs, [1.0, -3.0])
    t = terms(batch, level=level, own_clip=(3e-4, 4e-4))
    assert t.value_R.tolist() == [1.0, -3.0]
    assert t.log_ratio_R.tolist() == [0.0, 0.0]
    assert not t.below_R.any()
    assert not t.above_R.any()
    assert t.teaches_R.all()
    close(gradient(batch, level=level), [[0.5, 0.5, 0.0], [-1.0, -1.0, -1.0]])


def test_the_ratio_is_limited_without_gradient_beyond() -> None:
    x = tensor([-200.0, -9.0, 0.0, 9.0, 200.0, math.inf, -math.inf]).requires_grad_()
    ratio = limited_ratio(x)
    expected = [math.exp(v) for v in (-10, -9, 0, 9, 10, 10, -10)]
    close(ratio, expected)
    (slope,) = torch.autograd.grad(ratio.sum(), x)
    close(slope, [0.0, expected[1], 1.0, expected[3], 0.0, 0.0, 0.0])


# Own rows


@pytest.mark.parametrize(
    ("ratio", "advantage", "value", "slope"),
    [
        (1.0, 2.0, 2.0, 2.0),
        (1.1, 2.0, 2.2, 2.0),
        (1.5, 2.0, 2.56, 0.0),  # above 1.28: no more encouragement
        (0.5, 2.0, 1.0, 2.0),  # below 0.8: the min keeps the gradient
        (0.9, -2.0, -1.8, -2.0),
        (0.5, -2.0, -1.6, 0.0),  # below 0.8: no more discouragement
        (1.5, -2.0, -3.0, -2.0),  # above 1.28: the min keeps the gradient
        (1.5, 0.0, 0.0, 0.0),
    ],
)
def test_own_rows_are_clipped_inside_a_min(
    ratio: float, advantage: float, value: float, slope: float
) -> None:
    s = tensor(ratio).requires_grad_()
    term = terms(of_ratios(s, tensor(advantage), own=True)).value_R
    close(term, value)
    close(torch.autograd.grad(term.sum(), s)[0], slope)


@settings(max_examples=100, deadline=None)
@given(
    data=st.data(),
    samples=st.integers(2, 4),
    clip=st.sampled_from([(3e-4, 4e-4), (0.2, 0.28)]),
)
def test_a_single_agent_has_the_objective_of_gspo(
    data: st.DataObject, samples: int, clip: tuple[float, float]
) -> None:
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=samples, max_size=samples))
    logprob, drift = st.floats(-3.0, -0.1), st.floats(-0.3, 0.3)
    new = [[data.draw(logprob) for _ in range(n)] for n in lengths]
    old = [[x - data.draw(drift) for x in row] for row in new]
    rewards = [float(data.draw(st.integers(0, 2))) for _ in range(samples)]
    one = torch.ones(1, 1, dtype=DOUBLE)
    judged = advantages(
        tensor([[rewards]]),
        one,
        one.bool(),
        capability_aware=True,
        discrepancy=True,
        cross_baseline="source",
        guard=True,
        epsilon=1e-6,
    ).value_KJPG[0, 0, 0]
    actual = terms(rows(new, old, judged.tolist()), own_clip=clip, alpha=3.0).value_R.mean()

    mean = sum(rewards) / samples
    std = math.sqrt(sum((r - mean) ** 2 for r in rewards) / (samples - 1))
    expected = 0.0
    for x, y, reward in zip(new, old, rewards, strict=True):
        s = math.exp((sum(x) - sum(y)) / len(x))
        a = (reward - mean) / (std + 1e-6)
        expected += min(s * a, min(max(s, 1 - clip[0]), 1 + clip[1]) * a) / samples
    tolerances.assert_close(actual, tensor(expected), 1000, dtype=DOUBLE)


def test_alpha_length_and_cross_clipping_do_not_touch_own_rows() -> None:
    batch = rows([[-1.0, -1.2], [-0.5], [-2.0]], [-2.5, -0.4, -0.9], [1.0, 0.7, -2.0])
    plain = terms(batch).value_R
    slope = gradient(batch)
    for clip in CLIPS:
        changes = {"alpha": 3.0, "length": "own", "cross_clip": clip, "delta": 0.0}
        close(terms(batch, **changes).value_R, plain)
        close(gradient(batch, **changes), slope)


# Peers' rows


@pytest.mark.parametrize(
    ("update", "lower"), [(0, 0.8), (1, 0.825), (3, 0.875), (8, 1.0), (9, 1.0), (1000, 1.0)]
)
def test_the_lower_bound_rises_with_every_update_up_to_one(update: int, lower: float) -> None:
    low, high = stepwise_bounds(0.2, 0.025, update)
    assert low == pytest.approx(lower, rel=1e-12)
    assert low <= high == 1.0


def test_without_a_step_the_lower_bound_stays() -> None:
    assert stepwise_bounds(0.2, 0.0, 7) == (0.8, 1.0)
    assert stepwise_bounds(0.0, 0.0, 0) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("ratio", "alpha", "value", "slope"),  # for the advantage 2, within [0.8, 1]
    [
        (0.9, 0.0, 1.8, 2.0),
        (0.9, 1.0, 1.62, 1.8),  # 2·0.9·0.9, 2·0.9: not (1 + α) times it
        (0.9, 3.0, 1.3122, 1.458),  # 2·0.9⁴, 2·0.9³
        (0.5, 0.0, 1.6, 0.0),
        (0.5, 1.0, 0.8, 0.0),  # 2·0.8·0.5: the weight is of the unclipped ratio
        (0.5, 3.0, 0.2, 0.0),  # 2·0.8·0.5³
        (1.5, 0.0, 2.0, 0.0),
        (1.5, 1.0, 3.0, 0.0),  # 2·1·1.5
        (1.5, 3.0, 6.75, 0.0),  # 2·1·1.5³
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_peers_rows_are_clipped_on_both_sides_and_reweighted(
    ratio: float, alpha: float, value: float, slope: float, sign: int
) -> None:
    s = tensor([ratio]).requires_grad_()
    term = terms(of_ratios(s, tensor([2.0 * sign]), own=False), alpha=alpha).value_R
    close(term, [sign * value])
    close(torch.autograd.grad(term.sum(), s)[0], [sign * slope])


@pytest.mark.parametrize("alpha", [0.0, 1.0, 3.0])
def test_gradient_is_that_of_the_plain_ratio_with_the_weight_held_fixed(alpha: float) -> None:
    # own side 3 tokens, source 2: log s = (−3 + 2.8)/2 = −0.1
    batch = rows([[-1.0] * 3], [-2.8], [0.5], [False], [2])
    s = math.exp(-0.1)
    close(gradient(batch, alpha=alpha), 0.5 * s**alpha * s / 2)

    logprob = batch.logprob_RT.detach().clone().requires_grad_()
    ratio = ((logprob.sum(dim=1) + 2.8) / 2).exp()
    by_hand = (ratio * tensor([s**alpha]) * 0.5).sum()
    close(gradient(batch, alpha=alpha), torch.autograd.grad(by_hand, logprob)[0])


@given(log_ratio=st.floats(-12.0, 12.0), advantage=st.floats(-3.0, 3.0))
def test_alpha_zero_is_no_reweighting_exactly(log_ratio: float, advantage: float) -> None:
    batch = rows([[log_ratio]], [0.0], [advantage], [False], dtype=torch.float32)
    s, a = limited_ratio(batch.logprob_RT.detach()[0]), batch.advantage_R
    assert torch.equal(terms(batch, alpha=0.0).value_R, s.clamp(0.8, 1.0) * a)
    assert torch.equal(terms(batch, alpha=0.0, cross_clip="none").value_R, s * a)


@pytest.mark.parametrize("log_ratio", [-9.0, -0.5, 0.5, 9.0])
@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_without_cross_clipping_the_gradient_flows_at_any_ratio(
    log_ratio: float, advantage: float
) -> None:
    batch = rows([[log_ratio]], [0.0], [advantage], [False])
    t = terms(batch, cross_clip="none", alpha=1.0)
    close(t.value_R, advantage * math.exp(2 * log_ratio))
    close(gradient(batch, cross_clip="none", alpha=1.0), advantage * math.exp(2 * log_ratio))
    assert not t.below_R.any()
    assert not t.above_R.any()
    assert t.teaches_R.all()


def test_naive_sharing_treats_peers_rows_as_own_ones() -> None:
    logprobs = [[x] for x in (-1.0, -1.0, 0.0, 0.0, 1.0, 1.0)]
    sign = [1.0, -1.0] * 3
    own = rows(logprobs, [0.0] * 6, sign)
    peers = rows(logprobs, [0.0] * 6, sign, [False] * 6)
    # ratios 1/e, 1, e within [0.8, 1.28]
    expected = [1 / E, -0.8, 1.0, -1.0, 1.28, -E]
    slope = [1 / E, 0.0, 1.0, -1.0, 0.0, -E]
    for batch in (own, peers):
        t = terms(batch, cross_clip="own")
        close(t.value_R, expected)
        close(gradient(batch, cross_clip="own")[:, 0], slope)
        assert t.below_R.tolist() == [1, 1, 0, 0, 0, 0]
        assert t.above_R.tolist() == [0, 0, 0, 0, 1, 1]
        assert t.teaches_R.tolist() == [True, False, True, True, False, True]


def test_at_the_end_of_the_schedule_only_a_ratio_of_one_teaches() -> None:
    batch = rows([[-1.0], [-1.01], [-0.99]], [-1.0] * 3, [1.0] * 3, [False] * 3)
    t = terms(batch, update=100)
    assert t.teaches_R.tolist() == [True, False, False]
    close(t.value_R, 1.0)
    close(gradient(batch, delta=0.0)[:, 0], [1.0, 0.0, 0.0])


# The complete objective. Own clip [0.8, 1.28], cross clip [0.8, 1], α = 2.
MIXED = rows(
    [[-1.0, -1.0], [-0.5], [-0.5], [-1.0, -1.0, -1.0], [-1.0], [-0.6, -0.6], [-0.7]],
    [-2.2, -1.5, -1.5, -2.8, -0.5, -1.6, -0.7],
    [2.0, 1.0, -1.0, 0.5, -2.0, 1.0, 0.0],
    [True, True, True, False, False, False, False],
    [2, 1, 1, 2, 1, 2, 1],
)


def test_a_batch_of_own_and_peers_rows_by_hand() -> None:
    t = terms(MIXED, alpha=2.0)
    close(t.log_ratio_R, [0.1, 1.0, 1.0, -0.1, -0.5, 0.2, 0.0])
    expected = [
        2 * math.exp(0.1),  # inside
        1.28,  # e clipped
        -E,  # the min takes the unclipped one
        0.5 * math.exp(-0.3),  # s·s²
        -2 * 0.8 * math.exp(-1.0),  # e^−0.5 clipped to 0.8, weight e^−1
        1.0 * math.exp(0.4),  # e^0.2 clipped to 1, weight e^0.4
        0.0,
    ]
    close(t.value_R, expected)
    assert t.below_R.tolist() == [0, 0, 0, 0, 1, 0, 0]
    assert t.above_R.tolist() == [0, 1, 1, 0, 0, 1, 0]
    assert t.teaches_R.tolist() == [True, False, True, True, False, False, False]
    a, b = math.exp(0.1), 0.5 * math.exp(-0.3) / 2
    slopes = [[a, a, 0], [0, 0, 0], [-E, 0, 0], [b, b, b], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    close(gradient(MIXED, alpha=2.0), slopes)


def test_the_same_batch_with_each_side_by_its_own_length() -> None:
    t = terms(MIXED, alpha=2.0, length="own")
    # only the fourth row has two lengths: −3/3 + 2.8/2 = 0.4, clipped to 1, weight e^0.8
    close(t.log_ratio_R, [0.1, 1.0, 1.0, 0.4, -0.5, 0.2, 0.0])
    close(t.value_R[3], 0.5 * math.exp(0.8))
    assert t.above_R[3] == 1
    assert not t.teaches_R[3]
    kept = [0, 1, 2, 4, 5, 6]
    close(t.value_R[kept], terms(MIXED, alpha=2.0).value_R[kept])
    unclipped = gradient(MIXED, alpha=2.0, length="own", cross_clip="none")
    close(unclipped[3], 0.5 * math.exp(0.8) * math.exp(0.4) / 3)  # by the learner's length


def test_reports_carry_no_graph() -> None:
    logprobs = [[-1.0, -1.0], [-0.5, -2.0]]
    batch = rows(logprobs, logprobs, [1.0, -1.0])
    for level in ("sequence", "token"):
        t = terms(batch, level=level)
        assert t.value_R.requires_grad
        for report in (t.below_R, t.above_R, t.teaches_R, t.log_ratio_R):
            assert not report.requires_grad


@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
@pytest.mark.parametrize("level", ["sequence", "token"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_splitting_rows_changes_neither_the_sum_nor_the_gradient(
    level: str, size: int, dtype: torch.dtype
) -> None:
    lengths = [5, 500, 17, 64, 250, 5, 33, 128]
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(8, 500, 4, generator=generator, dtype=DOUBLE).to(dtype)
    old_RT = -torch.rand(8, 500, generator=generator, dtype=DOUBLE).to(dtype)
    mask_RT = torch.arange(500) < torch.tensor(lengths)[:, None]
    advantage_R = torch.randn(8, generator=generator, dtype=DOUBLE).to(dtype)
    own_R = torch.arange(8) % 2 == 0 if level == "sequence" else torch.ones(8, dtype=torch.bool)
    weight = torch.zeros(4, dtype=dtype, requires_grad=True)

    def total(part: list[int]) -> Tensor:
        width = max(lengths[i] for i in part)  # padded as a micro-batch is
        mask, old = mask_RT[part, :width], old_RT[part, :width]
        batch = Rows(
            logprob_RT=(old - 0.05 + (x[part, :width] @ weight)) * mask,
            mask_RT=mask,
            old_logprob_R=(old * mask).sum(dim=1),
            old_length_R=mask.sum(dim=1),
            advantage_R=advantage_R[part],
            own_R=own_R[part],
            old_logprob_RT=old * mask,
        )
        return terms(batch, level=level, alpha=1.0).value_R.sum()

    whole = total(list(range(8)))
    (expected,) = torch.autograd.grad(whole, weight)
    parts = [total(list(range(i, min(i + size, 8)))) for i in range(0, 8, size)]
    for part in parts:
        torch.autograd.backward(part)
    close(torch.stack(parts).sum(), whole.detach(), sum(lengths), dtype)
    assert weight.grad is not None
    scale = expected.abs().max().item()
    assert scale > 0.01
    close(weight.grad / scale, expected / scale, sum(lengths), dtype)


# Badly matched rows


@pytest.mark.parametrize("advantage", [1.0, -1.0])
@pytest.mark.parametrize("mean_log_ratio", [200.0, -200.0, -math.inf])
@pytest.mark.parametrize(
    ("own", "changes"),
    [
        (True, {}),
        (True, {"level": "token"}),
        (False, {"alpha": 3.0}),
        (False, {"alpha": 7.0}),
        (False, {"alpha": 3.0, "cross_clip": "none"}),
        (False, {"cross_clip": "own"}),
        (False, {"alpha": 3.0, "length": "own"}),
    ],
)
def test_one_bad_row_does_not_reach_the_normal_one(
    own: bool, changes: dict[str, Any], mean_log_ratio: float, advantage: float
) -> None:
    bad = [mean_log_ratio, mean_log_ratio]
    batch = rows(
        [bad, [-1.0, -1.05]],
        [[0.0, 0.0], [-1.0, -1.0]],
        [advantage, 1.0],
        [own] * 2,
        dtype=torch.float32,
    )
    alone = rows([[-1.0, -1.05]], [[-1.0, -1.0]], [1.0], [own], dtype=torch.float32)
    t = terms(batch, **changes)
    assert t.value_R.isfinite().all()
    slope = gradient(batch, **changes)
    assert slope[0].tolist() == [0.0, 0.0]
    assert slope[1].abs().min() > 0.1
    close(slope[1], gradient(alone, **changes)[0], dtype=torch.float32)


def test_a_bad_row_does_not_teach() -> None:
    batch = rows([[200.0], [-200.0], [0.0]], [0.0] * 3, [-1.0, 1.0, 1.0])
    assert terms(batch).teaches_R.tolist() == [False, False, True]
    batch = rows([[200.0], [-200.0], [0.0]], [0.0] * 3, [-1.0, 1.0, 1.0], [False] * 3)
    assert terms(batch, cross_clip="none").teaches_R.tolist() == [False, False, True]


def test_a_bad_row_does_not_teach_at_token_level_either() -> None:
    # A < 0 above the interval and A > 0 below it are the sides that the min leaves open, but
    # beyond ±10 the limit takes the gradient.
    batch = rows([[200.0], [-200.0], [0.0]], [[0.0]] * 3, [-1.0, 1.0, 1.0])
    assert gradient(batch, level="token").flatten().tolist() == [0.0, 0.0, 1.0]
    assert terms(batch, level="token").teaches_R.tolist() == [False, False, True]
    assert terms(batch, level="token").limited_R.tolist() == [True, True, False]


LOG_RATIOS = st.one_of(st.floats(-0.4, 0.4), st.floats(-9.9, 9.9))


@settings(max_examples=200, deadline=None)
@given(data=st.data(), cross_clip=st.sampled_from(CLIPS), alpha=st.sampled_from([0.0, 1.0, 3.0]))
def test_a_row_is_said_to_teach_exactly_where_it_has_a_gradient(
    data: st.DataObject, cross_clip: Clip, alpha: float
) -> None:
    drift = data.draw(
        st.lists(st.one_of(LOG_RATIOS, st.floats(10.1, 99.0)), min_size=4, max_size=4)
    )
    advantage = [data.draw(st.sampled_from([-2.0, -0.5, 0.0, 1.0])) for _ in drift]
    own = [data.draw(st.booleans()) for _ in drift]
    batch = rows([[x - 1.0, -1.0] for x in drift], [-2.0] * 4, advantage, own, [1] * 4)
    options = {"cross_clip": cross_clip, "alpha": alpha}
    expected = (gradient(batch, **options) != 0).any(dim=1)
    assert torch.equal(terms(batch, **options).teaches_R, expected)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_at_token_level_likewise(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, 3), min_size=3, max_size=3))
    drift = [[data.draw(LOG_RATIOS) for _ in range(n)] for n in lengths]
    advantage = [data.draw(st.sampled_from([-2.0, 0.0, 1.0])) for _ in lengths]
    batch = rows(drift, [[0.0] * n for n in lengths], advantage)
    expected = (gradient(batch, level="token") != 0).any(dim=1)
    assert torch.equal(terms(batch, level="token").teaches_R, expected)


@settings(max_examples=200, deadline=None)
@given(
    data=st.data(),
    cross_clip=st.sampled_from(CLIPS),
    alpha=st.floats(0.0, 7.0),
    length=st.sampled_from(["source", "own"]),
)
def test_values_and_gradients_are_finite_for_any_logprobs(
    data: st.DataObject, cross_clip: Clip, alpha: float, length: str
) -> None:
    logprob = st.floats(-(2.0**100), 0.0, width=32)
    new = [[data.draw(logprob) for _ in range(2)] for _ in range(3)]
    old = [[data.draw(logprob) for _ in range(2)] for _ in range(3)]
    advantage = [data.draw(st.floats(-1e3, 1e3)) for _ in range(3)]
    own = [data.draw(st.booleans()) for _ in range(3)]
    batch = rows(new, old, advantage, own, dtype=torch.float32)
    options = {"cross_clip": cross_clip, "alpha": alpha, "length": length}
    assert terms(batch, **options).value_R.isfinite().all()
    assert gradient(batch, **options).isfinite().all()
    tokens = rows(new, old, advantage, dtype=torch.float32)
    assert terms(tokens, level="token").value_R.isfinite().all()
    assert gradient(tokens, level="token").isfinite().all()


# GRPO


def test_a_grpo_term_is_the_mean_over_tokens_of_their_clipped_objectives() -> None:
    log_ratio = torch.tensor([[0.1, 1.0, -1.0, 0.0], [0.1, 1.0, -1.0, 7.0]], dtype=DOUBLE)
    mask = torch.tensor([[True] * 4, [True, True, True, False]])
    zeros = torch.zeros(2, dtype=DOUBLE)
    own = torch.tensor([True, True])
    batch = Rows(
        log_ratio, mask, zeros, tensor([4, 3]), tensor([2.0, -2.0]), own, torch.zeros(2, 4)
    )
    value = terms(batch, level="token").value_R
    # A = 2: (2e^0.1 + 2·1.28 + 2/e + 2)/4; A = −2: (−2e^0.1 − 2e − 2·0.8)/3
    first = (2 * math.exp(0.1) + 2.56 + 2 / E + 2) / 4
    second = (-2 * math.exp(0.1) - 2 * E - 1.6) / 3
    close(value, [first, second])


def test_grpo_rows_by_hand() -> None:
    batch = rows(
        [[-0.9, -0.5, -2.0], [-1.0, -2.0]], [[-1.0, -1.5, -1.0], [-1.0, -1.0]], [1.0, -1.0]
    )
    t = terms(batch, level="token")
    # ratios e^0.1, e, 1/e; 1, 1/e
    a = math.exp(0.1)
    close(t.value_R, [(a + 1.28 + 1 / E) / 3, (-1 - 0.8) / 2])
    close(t.log_ratio_R, [(0.1 + 1.0 - 1.0) / 3, -0.5])
    close(t.below_R, [1 / 3, 1 / 2], dtype=torch.float32)
    close(t.above_R, [1 / 3, 0.0], dtype=torch.float32)
    assert t.teaches_R.tolist() == [True, True]
    close(gradient(batch, level="token"), [[a / 3, 0.0, 1 / E / 3], [-0.5, 0.0, 0.0]])


def test_grpo_refuses_peers_rows_and_rows_without_token_logprobs() -> None:
    with pytest.raises(ValueError, match="own rows"):
        terms(rows([[-1.0]], [[-1.0]], [1.0], [False]), level="token")
    with pytest.raises(ValueError, match="token log-prob"):
        terms(rows([[-1.0]], [-1.0], [1.0]), level="token")


# KL


def test_kl_term_by_hand_over_the_tokens_of_each_response() -> None:
    # r = π_ref/π = 2, 1/2, 1: r − 1 − log r = 1 − log 2, −1/2 + log 2, 0
    log2 = math.log(2)
    logprob = tensor([[-1.0, -1.0, -1.0], [-1.0, -1.0, 0.0]]).requires_grad_()
    reference = tensor([[log2 - 1, -log2 - 1, -1.0], [log2 - 1, log2 - 1, 5.0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    kl = kl_term(logprob, reference, mask)
    close(kl, [0.5 / 3, 1 - log2])
    # d/d log π = 1 − r
    (slope,) = torch.autograd.grad(kl.sum(), logprob)
    close(slope, [[-1 / 3, 1 / 6, 0.0], [-1 / 2, -1 / 2, 0.0]])


@given(st.floats(-100.0, 0.0, width=32), st.floats(-100.0, 0.0, width=32))
def test_kl_estimates_are_finite_and_not_negative(new: float, reference: float) -> None:
    logprob = tensor([[new]]).requires_grad_()
    kl = kl_term(logprob, tensor([[reference]]), torch.tensor([[True]]))
    assert kl.isfinite().all()
    # exp(x) − 1 − x would cancel for small x and fall below zero.
    assert (kl >= 0).all()
    assert torch.autograd.grad(kl.sum(), logprob)[0].isfinite().all()


@pytest.mark.parametrize("log_r", [1e-4, -1e-4, 1e-3])
def test_kl_of_close_policies_survives_single_precision(log_r: float) -> None:
    zero = torch.zeros(1, 1)
    kl = kl_term(zero, torch.full((1, 1), log_r), torch.ones(1, 1, dtype=torch.bool))
    # exp(x) − 1 − x in fp32 would give 1.66e-8 for 1e-4 and −1.66e-8 for −1e-4.
    assert kl.item() == pytest.approx(log_r**2 / 2 + log_r**3 / 6, rel=1e-2)


def test_kl_of_equal_policies_is_zero_without_gradient() -> None:
    logprob = tensor([[-0.3, -4.0]]).requires_grad_()
    kl = kl_term(logprob, logprob.detach(), torch.tensor([[True, True]]))
    assert kl.tolist() == [0.0]
    assert torch.autograd.grad(kl.sum(), logprob)[0].tolist() == [[0.0, 0.0]]


def test_the_kl_estimate_is_unbiased() -> None:
    # Two tokens, π = (3/4, 1/4) and π_ref = (1/2, 1/2): KL = 3/4·log(3/2) + 1/4·log(1/2)
    new, reference = tensor([[0.75], [0.25]]).log(), tensor([[0.5], [0.5]]).log()
    kl = kl_term(new, reference, torch.ones(2, 1, dtype=torch.bool))
    close((kl * tensor([0.75, 0.25])).sum(), 0.75 * math.log(1.5) + 0.25 * math.log(0.5))

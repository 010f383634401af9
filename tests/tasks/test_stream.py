from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hacrl.errors import UserError
from hacrl.records import Prompt
from hacrl.tasks import PromptStream


def prompts(count: int) -> list[Prompt]:
    return [Prompt(f"t/{i}", "t", "?", "1") for i in range(count)]


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(1, 9), st.integers(0, 3))
def test_every_epoch_deals_every_prompt_once(count: int, per_step: int, seed: int) -> None:
    stream = PromptStream(prompts(count), per_step, seed)
    batches = [stream.batch(step) for step in range(2 * count)]
    assert {len(batch) for batch in batches} == {per_step}
    dealt = [prompt.id for batch in batches for prompt in batch]
    epochs = [dealt[i : i + count] for i in range(0, len(dealt), count)]
    assert all(Counter(epoch) == Counter(p.id for p in prompts(count)) for epoch in epochs)


def test_a_batch_depends_on_the_step_alone() -> None:
    forward = [PromptStream(prompts(10), 4, 7).batch(step) for step in range(9)]
    stream = PromptStream(prompts(10), 4, 7)
    assert [stream.batch(step) for step in reversed(range(9))] == forward[::-1]


def test_order_differs_by_seed_and_by_epoch() -> None:
    one, other = (PromptStream(prompts(50), 50, seed) for seed in (0, 1))
    orders = [tuple(prompts(50)), one.batch(0), one.batch(1), other.batch(0)]
    assert len({tuple(prompt.id for prompt in order) for order in orders}) == 4


def test_order_stays_the_same_between_versions() -> None:
    assert [p.id for p in PromptStream(prompts(6), 6, 0).batch(0)] == [
        "t/3",
        "t/5",
        "t/0",
        "t/1",
        "t/4",
        "t/2",
    ]


def test_no_prompts() -> None:
    with pytest.raises(UserError, match="no prompts are left"):
        PromptStream([], 4, 0)


WEIGHTS = st.lists(st.floats(0.01, 100.0), min_size=1, max_size=5)


def mixed(sizes: list[int]) -> list[Prompt]:
    return [Prompt(f"{t}/{i}", str(t), "?", "1") for t, n in enumerate(sizes) for i in range(n)]


@settings(deadline=None)
@given(WEIGHTS, st.data())
def test_tasks_are_mixed_in_proportion(weights: list[float], data: st.DataObject) -> None:
    sizes = [data.draw(st.integers(1, 7)) for _ in weights]
    per_step = data.draw(st.integers(1, 9))
    by_name = {str(i): weight for i, weight in enumerate(weights)}
    stream = PromptStream(mixed(sizes), per_step, 0, by_name)
    dealt: list[Prompt] = []
    for step in range(40):
        batch = stream.batch(step)
        assert len(batch) == per_step
        dealt += batch
    counts = Counter[str]()
    for n, prompt in enumerate(dealt, start=1):
        counts[prompt.task] += 1
        for name, weight in by_name.items():
            share = weight / sum(weights)
            assert abs(counts[name] - n * share) <= 0.5 + share * len(weights) / 2 + 1e-6
    for name, size in zip(by_name, sizes, strict=True):
        own = [prompt.id for prompt in dealt if prompt.task == name]
        for start in range(0, len(own) - size + 1, size):
            assert len(set(own[start : start + size])) == size  # every epoch, each once


@given(WEIGHTS, st.integers(0, 100_000))
@settings(deadline=None)
def test_a_mixed_batch_depends_on_the_step_alone(weights: list[float], first: int) -> None:
    """Batches cut differently hold the same sequence, however far into the run."""
    by_name = {str(i): weight for i, weight in enumerate(weights)}
    prompts = mixed([3] * len(weights))
    long = PromptStream(prompts, 4, 7, by_name)
    short = PromptStream(prompts, 2, 7, by_name)
    halves = short.batch(2 * first) + short.batch(2 * first + 1)
    assert long.batch(first) == halves


def test_equal_weights_alternate_and_sizes_do_not_matter() -> None:
    stream = PromptStream(mixed([100, 2]), 6, 0)
    assert [p.task for p in stream.batch(0)] == ["0", "1", "0", "1", "0", "1"]
    thirds = PromptStream(mixed([9, 9]), 6, 0, {"0": 2.0, "1": 1.0})
    assert [p.task for p in thirds.batch(5)] == ["0", "1", "0"] * 2


def test_another_task_or_weight_leaves_the_order_within_a_task() -> None:
    alone = [p.id for p in PromptStream(mixed([8]), 8, 3).batch(0)]
    for weights in ({"0": 1.0, "1": 1.0}, {"0": 3.0, "1": 0.5}):
        stream = PromptStream(mixed([8, 8]), 16, 3, weights)
        dealt = [p.id for step in range(2) for p in stream.batch(step)]
        assert [name for name in dealt if name.startswith("0/")][:8] == alone
        assert [name[1:] for name in dealt if name.startswith("1/")][:8] != [n[1:] for n in alone]


def test_a_task_without_prompts_is_named() -> None:
    with pytest.raises(UserError, match=r"tasks\.b: no prompts are left to train on"):
        PromptStream(prompts(3), 4, 0, {"t": 1.0, "b": 1.0})

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

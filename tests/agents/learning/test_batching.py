from collections import Counter
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hacrl.agents.learning.batching import micro_batches, mini_batches

Order = Literal["own_first", "mixed"]
ORDERS = st.sampled_from(["own_first", "mixed"])
LENGTHS = st.dictionaries(st.integers(0, 99), st.integers(1, 60), max_size=25)


def pool(own: int, *peers: int) -> tuple[list[int], dict[str, list[int]]]:
    """Rows 0.. are own, 100.. the first peer's ("a"), 200.. the second's ("b"), and so on."""
    return list(range(own)), {
        "abcd"[i]: list(range(100 * (i + 1), 100 * (i + 1) + rows)) for i, rows in enumerate(peers)
    }


def shares(batch: list[int]) -> dict[int, int]:
    return dict(Counter(row // 100 for row in batch))


def test_own_rows_come_first_and_then_every_peer_in_equal_share() -> None:
    own, peers = pool(4, 4, 4)
    assert mini_batches(own, peers, 2, "own_first") == [
        [0, 1],
        [2, 3],
        [100, 200],
        [101, 201],
        [102, 202],
        [103, 203],
    ]


def test_mixed_batches_hold_every_source_in_equal_share() -> None:
    own, peers = pool(6, 6, 6)
    batches = mini_batches(own, peers, 2, "mixed")
    assert batches == [[i, 100 + i, 200 + i] for i in range(6)]


@pytest.mark.parametrize("order", ["own_first", "mixed"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_without_peers_the_own_rows_are_cut_into_m_batches(order: Order, count: int) -> None:
    size = 8 // count
    expected = [list(range(i, i + size)) for i in range(0, 8, size)]
    assert mini_batches(range(8), {}, count, order) == expected


@given(
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=4),
    count=st.integers(1, 4),
    order=ORDERS,
)
def test_a_step_is_one_pass_in_n_times_m_batches(
    sizes: list[int], count: int, order: Order
) -> None:
    own, peers = pool(*sizes)
    batches = mini_batches(own, peers, count, order)
    assert len(batches) == len(sizes) * count
    rows = [row for batch in batches for row in batch]
    assert sorted(rows) == sorted(own + [row for p in peers.values() for row in p])
    # each source's rows keep their order, and its share differs by at most one row
    for source in range(len(sizes)):
        assert [r for r in rows if r // 100 == source] == sorted(
            r for r in rows if r // 100 == source
        )
    if order == "own_first":
        assert all(row < 100 for batch in batches[:count] for row in batch)
        assert all(row >= 100 for batch in batches[count:] for row in batch)
        groups = [([0], batches[:count]), (range(1, len(sizes)), batches[count:])]
    else:
        groups = [(range(len(sizes)), batches)]
    for sources, group in groups:
        for source in sources:
            counts = [shares(batch).get(source, 0) for batch in group]
            assert max(counts) - min(counts) <= 1


@given(n=st.integers(1, 4), per_batch=st.integers(1, 4), count=st.integers(1, 3), order=ORDERS)
def test_a_full_pool_is_cut_into_batches_of_equal_size(
    n: int, per_batch: int, count: int, order: Order
) -> None:
    rows = per_batch * count * n * max(n - 1, 1)
    own, peers = pool(*[rows] * n)
    batches = mini_batches(own, peers, count, order)
    assert [len(batch) for batch in batches] == [rows // count] * (n * count)


@pytest.mark.parametrize(
    ("sizes", "count", "order"),
    [
        ([15, 15], 1, "mixed"),  # 30 rows in 2: not 14 and 16
        ([4, 4, 4], 2, "mixed"),  # 12 rows in 6: not 0 3 3 0 3 3
        ([4, 4, 4], 4, "own_first"),  # 8 peers' rows in 8: not 0 2 0 2 0 2 0 2
        ([6, 3, 3], 2, "own_first"),  # 6 peers' rows in 4: not 0 2 2 2
    ],
)
def test_batches_have_equal_size_also_where_sources_do_not_divide(
    sizes: list[int], count: int, order: Order
) -> None:
    own, peers = pool(*sizes)
    batches = mini_batches(own, peers, count, order)
    # Cutting every source at the same fractions would add up the remainders in the same batches:
    # updates of unequal size, and empty ones although there is a row for each.
    for group in [batches] if order == "mixed" else [batches[:count], batches[count:]]:
        assert max(map(len, group)) - min(map(len, group)) <= 1


@given(
    sizes=st.lists(st.integers(0, 8), min_size=2, max_size=4),
    count=st.integers(1, 3),
    order=ORDERS,
    data=st.data(),
)
def test_the_order_of_the_peers_does_not_matter(
    sizes: list[int], count: int, order: Order, data: st.DataObject
) -> None:
    own, peers = pool(*sizes)
    names = data.draw(st.permutations(list(peers)))
    permuted = {name: peers[name] for name in names}
    assert mini_batches(own, permuted, count, order) == mini_batches(own, peers, count, order)


def test_rows_of_similar_length_are_computed_together() -> None:
    lengths = {0: 2, 1: 9, 2: 3, 3: 5, 4: 4}
    # longest first: 9 alone (2·9 > 10); 5 and 4 (2·5 ≤ 10); 3 and 2 (2·3 ≤ 10)
    assert micro_batches([0, 1, 2, 3, 4], lengths, 10) == [[1], [3, 4], [2, 0]]


def test_the_budget_may_be_met_exactly() -> None:
    lengths = dict.fromkeys(range(5), 5)
    assert micro_batches(range(5), lengths, 10) == [[0, 1], [2, 3], [4]]
    assert micro_batches(range(5), lengths, 9) == [[0], [1], [2], [3], [4]]


def test_a_row_beyond_the_budget_gets_its_turn_alone() -> None:
    assert micro_batches([0, 1, 2], {0: 1, 1: 50, 2: 1}, 10) == [[1], [0, 2]]


def test_no_rows_make_no_micro_batches() -> None:
    assert micro_batches([], {}, 10) == []


@given(lengths=LENGTHS, budget=st.integers(1, 120), data=st.data())
def test_micro_batches_keep_the_budget_and_hold_every_row_once(
    lengths: dict[int, int], budget: int, data: st.DataObject
) -> None:
    rows = data.draw(st.permutations(list(lengths)))
    batches = micro_batches(rows, lengths, budget)
    assert sorted(row for batch in batches for row in batch) == sorted(lengths)
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= budget
    assert batches == micro_batches(sorted(rows), lengths, budget)

from __future__ import annotations

from hacrl.seeding import derive_seed


def test_a_seed_depends_on_every_part_of_its_place() -> None:
    places = [(0,), (1,), (0, "a"), (0, "b"), (0, "a", 1), (0, "a1"), (0, "a", "1", "")]
    assert len({derive_seed(*place) for place in places}) == len(places)


def test_seeds_are_the_same_in_every_process_and_fit_torch() -> None:
    assert derive_seed(0, "sample", "kim", "step 0") == 2_156_906_209_226_909_087
    assert 0 <= derive_seed(2**40, "x") < 2**63

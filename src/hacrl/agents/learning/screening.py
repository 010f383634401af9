"""Which rows are looked at without gradients first, because their ratio may be clipped.

A row outside its clip interval has no gradient, but that is known only after its forward pass. A
forward pass without gradients costs about a third of learning from the row; it pays where enough
rows turn out to be clipped, as peers' often are. Measured for SmolLM2 and the demo's models, one
peer: learning is 1.35 to 1.45 times as fast where all of the peer's rows are clipped, 1.10 to 1.13
where three quarters are, and would be 0.95 where half are (`benchmarks/pays.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hacrl.agents.learning.lessons import Lesson

__all__ = ["Screening"]

_WORTHWHILE = 1 / 3
"""Up to this share of teaching rows, a look at all of them costs less than it saves."""


class Screening:
    """Remembers how many rows had a gradient of late, and decides by that.

    Args:
        own_always_teach: own rows have a gradient even where they are clipped, that of the KL term.

    Attributes:
        teaching: share of own and of peers' rows that had a gradient when last seen; they have
            intervals of their own.
    """

    def __init__(self, *, own_always_teach: bool) -> None:
        self._own_always_teach = own_always_teach
        self.teaching = (0.0, 0.0)

    def candidates(self, lessons: Sequence[Lesson], rows: Sequence[int], update: int) -> list[int]:
        """Those of `rows` that are worth a look.

        Args:
            update: number of the update within the step. The first finds the weights that sampled,
                where own ratios are 1.
        """
        own, peers = (share <= _WORTHWHILE for share in self.teaching)
        own = own and update > 0 and not self._own_always_teach
        return [i for i in rows if (own if lessons[i].own else peers)]

    def observe(self, rows: Iterable[tuple[bool, bool]], update: int) -> None:
        """Take in one mini-batch: of each row whether it is an own one, and whether it taught."""
        seen = list(rows)
        shares = []
        for own, before in zip((True, False), self.teaching, strict=True):
            taught = [teaches for is_own, teaches in seen if is_own == own]
            tells = taught and not (own and update == 0)
            shares.append(sum(taught) / len(taught) if tells else before)
        self.teaching = (shares[0], shares[1])

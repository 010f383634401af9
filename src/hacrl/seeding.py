"""Seeds derived from names, so that no random state has to be carried along.

Every random draw of a run takes its generator from the run's seed and the place where it is drawn
(agent, step, ...). A resumed run, or one with an evaluation in between, draws the same numbers.
"""

from __future__ import annotations

import hashlib

__all__ = ["derive_seed"]


def derive_seed(seed: int, *place: int | str) -> int:
    """A 63-bit seed that depends on the run's seed and on the place, by SHA-256."""
    text = "\x1f".join(str(part) for part in (seed, *place))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1

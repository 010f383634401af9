"""Problems made by reasoning-gym generators."""

from __future__ import annotations

import difflib

from hacrl.config.sources import ReasoningGymSource
from hacrl.errors import UserError
from hacrl.tasks.problem import Problem

__all__ = ["read_gym"]


def read_gym(source: ReasoningGymSource) -> list[Problem]:
    """The first `size` problems of a generator; the same seed gives the same problems.

    Each keeps the generator's metadata and its name, which is what its scorer needs.

    Raises:
        UserError: there is no such generator, or it refuses its settings.
    """
    from reasoning_gym.factory import DATASETS, create_dataset  # takes seconds

    if source.name not in DATASETS:
        near = difflib.get_close_matches(source.name, DATASETS, n=3) or sorted(DATASETS)[:3]
        raise UserError(
            f"source.name: reasoning-gym has no generator {source.name!r}; "
            f"did you mean {', '.join(near)}?"
        )
    try:
        dataset = create_dataset(source.name, seed=source.seed, size=source.size, **source.config)
        # Some settings are only found wanting when a problem is made.
        entries = [dataset[i] for i in range(source.size)]
    # Generators check their settings with assertions and with errors of every kind.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(
            f"source.config: the generator {source.name} refuses its settings: {reason}"
        ) from error
    return [
        Problem(entry["question"], str(entry["answer"]), entry["metadata"]) for entry in entries
    ]

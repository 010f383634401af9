"""Problems made by reasoning-gym generators."""

from __future__ import annotations

import difflib
from typing import Any

from hacrl.config.sources import GeneratorSpec, ReasoningGymSource
from hacrl.config.text import short
from hacrl.errors import UserError
from hacrl.tasks.problem import Problem

__all__ = ["read_gym"]


def read_gym(source: ReasoningGymSource) -> list[Problem]:
    """The first `size` problems of a generator or of a mixture; equal seeds give equal problems.

    Each keeps its generator's metadata and name, which is what the generator's scorer needs.

    Raises:
        UserError: there is no such generator, it refuses its settings, or has no difficulty.
    """
    mixture = source.mixture()
    settings = {name: _settings(name, spec) for name, spec in mixture.items()}
    try:
        dataset = _dataset(source, settings)
        # Some settings are only found wanting when a problem is made.
        entries = [dataset[i] for i in range(source.size)]
    # Generators check their settings with assertions and with errors of every kind.
    except Exception as error:
        reason = short(str(error)) or type(error).__name__
        raise UserError(
            f"source.config: the generator {' or '.join(mixture)} refuses its settings: {reason}"
        ) from error
    # Some generators leave out their name, which their scorer is found by.
    name = {} if source.name is None else {"source_dataset": source.name}
    return [
        Problem(entry["question"], str(entry["answer"]), name | entry["metadata"])
        for entry in entries
    ]


def _settings(name: str, spec: GeneratorSpec) -> dict[str, Any]:
    """A generator's own settings: those of its difficulty, then what the recipe says."""
    from reasoning_gym.factory import CURRICULA, DATASETS, create_curriculum  # takes seconds

    if name not in DATASETS:
        near = difflib.get_close_matches(name, DATASETS, n=3) or sorted(DATASETS)[:3]
        raise UserError(
            f"source.name: reasoning-gym has no generator {name!r}; did you mean {', '.join(near)}?"
        )
    if spec.difficulty is None:
        return dict(spec.config)
    if name not in CURRICULA:
        raise UserError(
            f"source.difficulty: the generator {name} has no difficulty levels; use its config"
        )
    curriculum = create_curriculum(name)
    curriculum.set_global_level(spec.difficulty)
    level = vars(curriculum.generate_configuration())
    # The data set brings its own seed and size.
    return {k: v for k, v in level.items() if k not in ("seed", "size")} | spec.config


def _dataset(source: ReasoningGymSource, settings: dict[str, dict[str, Any]]) -> Any:
    from reasoning_gym.composite import DatasetSpec
    from reasoning_gym.factory import create_dataset

    if source.name is not None:
        own = settings[source.name]
        return create_dataset(source.name, seed=source.seed, size=source.size, **own)
    specs = [
        DatasetSpec(name, source.generators[name].weight, own) for name, own in settings.items()
    ]
    return create_dataset("composite", seed=source.seed, size=source.size, datasets=specs)

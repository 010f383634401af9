"""What differs between two recipes, and what of it a run may take over while it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from hacrl.config.schema import Recipe
from hacrl.config.text import short

__all__ = ["Change", "changes"]

_HARMLESS = (
    *("threads", "method", "agents.*.device", "sampling.batch_size"),
    *("fleet.*", "agents.*.resources.*", "agents.*.ranks"),
    # Other draws from the same distribution, as on another device; a probe sees to that.
    *("agents.*.sampler", "agents.*.sampler.*"),
    *("checkpoints", "checkpoints.*", "evaluation", "evaluation.*", "verification.*"),
    *("update.micro_batch_tokens", "update.gradient_checkpointing", "update.max_skipped"),
    *("update.alignment_every", "loggers"),
    # What the sources hold is compared by its fingerprint, wherever it lies.
    "tasks.*.source.*",
)
"""Keys that decide where, how fast and how well guarded a run goes, not what it learns. `method`
alone changes nothing: what it stands for is spelt out in the other keys."""

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Change:
    """A key whose value differs. `harmless` if the run would learn the same with either value."""

    key: str
    before: str
    now: str
    harmless: bool

    def __str__(self) -> str:
        return f"{self.key} was {self.before}, is {self.now}"


def changes(before: Recipe, now: Recipe) -> list[Change]:
    """Every key that differs, in the order of the recipe."""
    old, new = dict(_leaves(before.model_dump(mode="json"))), _leaves(now.model_dump(mode="json"))
    merged = {**{key: (value, _ABSENT) for key, value in old.items()}}
    merged |= {key: (old.get(key, _ABSENT), value) for key, value in new}
    return [
        Change(key, _show(a), _show(b), _harmless(key, now))
        for key, (a, b) in merged.items()
        if a != b
    ]


def _harmless(key: str, now: Recipe) -> bool:
    if key == "steps":  # the end of a run, unless the learning rate is planned towards it
        return now.optimizer.schedule == "constant"
    return any(fnmatchcase(key, pattern) for pattern in _HARMLESS)


def _leaves(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _show(value: object) -> str:
    return "absent" if value is _ABSENT else short(repr(value))

"""Plain sentences about what a user should look at, drawn from the metrics of a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["Advisor"]

_NO_ANSWER = 0.3
_OUTSIDE = 0.9
_QUIET_STEPS = 3


class Advisor:
    """Says each thing once per agent."""

    def __init__(self) -> None:
        self._said: set[tuple[str, ...]] = set()
        self._quiet: dict[str, int] = {}

    def advise(self, rows: Iterable[Mapping[str, Any]]) -> list[str]:
        """New advice after one step's metrics."""
        return [text for row in rows for key, text in self._notes(row) if self._first(key)]

    def _first(self, key: tuple[str, ...]) -> bool:
        new = key not in self._said
        self._said.add(key)
        return new

    def _notes(self, row: Mapping[str, Any]) -> Iterable[tuple[tuple[str, ...], str]]:
        agent, total = row["agent"], row["scored"] + row["unscored"]
        if row["unscored"]:
            yield (
                ("unscored", agent),
                f"{agent}: {row['unscored']} of {total} responses could not be scored and are "
                f"left out ({_counts(row['outcomes'])})",
            )
        if (missed := row["outcomes"].get("no_answer", 0)) > _NO_ANSWER * total:
            yield (
                ("no_answer", agent),
                f"{agent}: {missed} of {total} responses hold no answer in the expected form; its "
                "capability, and with it ω, measures the format as well",
            )
        if row["truncated"] > _NO_ANSWER:
            yield (
                ("truncated", agent),
                f"{agent}: {row['truncated']:.0%} of responses hit sampling.max_new_tokens",
            )
        silent = row["groups_without_signal"] == row["groups"]
        self._quiet[agent] = self._quiet.get(agent, 0) + 1 if silent else 0
        if self._quiet[agent] == _QUIET_STEPS:
            yield (
                ("quiet", agent),
                f"{agent}: {row['groups']} of {row['groups']} groups carry no signal for "
                f"{_QUIET_STEPS} steps: all rewards of a group are equal; take easier or harder "
                "problems, or a larger group",
            )
        for source, shares in row["sources"].items():
            outside = None if shares["inside"] is None else 1.0 - shares["inside"]
            if outside is not None and outside > _OUTSIDE:
                yield (
                    ("outside", agent, source),
                    f"{agent}: {outside:.0%} of {source}'s rows are clipped and teach nothing "
                    f"(mean ratio {shares['ratio_mean']:.2f}); consider a larger clip.delta",
                )
        if row["skipped_updates"]:
            yield (
                ("skipped", agent),
                f"{agent}: {row['skipped_updates']} updates skipped, their gradient was not finite",
            )


def _counts(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in outcomes.items())

"""Plain sentences about what a user should look at, drawn from the metrics of a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["Advisor"]

_NO_ANSWER = 0.3
_APART = 0.1
"""Difference in the share of responses without an answer that ω should not be trusted with."""
_OUTSIDE = 0.9
_QUIET_STEPS = 3


class Advisor:
    """Says each thing once per agent."""

    def __init__(self) -> None:
        self._said: set[tuple[str, ...]] = set()
        self._quiet: dict[str, int] = {}

    def advise(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        """New advice after one step's metrics, one row per agent."""
        return [
            text
            for row in rows
            for key, text in (*self._notes(row), *_format_notes(row, rows))
            if self._first(key)
        ]

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
        if (row["truncated"] or 0.0) > _NO_ANSWER:
            limit = "sampling.max_new_tokens" if "groups" in row else "the limit of tokens"
            yield ("truncated", agent), f"{agent}: {row['truncated']:.0%} of responses hit {limit}"
        if "groups" in row:  # it learns
            yield from self._learning_notes(row)

    def _learning_notes(self, row: Mapping[str, Any]) -> Iterable[tuple[tuple[str, ...], str]]:
        agent = row["agent"]
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
                f"{agent}: {row['skipped_updates']} updates skipped, since their loss or gradient "
                "was not finite; their rows are in the folder faults",
            )
        if (room := row["reduced_micro_batch_tokens"]) is not None:
            yield (
                ("memory", agent, str(room)),
                f"{agent}: memory ran out in learning; micro-batches have at most {room} tokens "
                f"from now on, with the same gradient (update.micro_batch_tokens: {room})",
            )


def _format_notes(
    row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> Iterable[tuple[tuple[str, ...], str]]:
    """Whether rewards measure the form of the answers more than the answers."""
    agent, (missed, total) = row["agent"], _missed(row)
    if missed <= _NO_ANSWER * total:
        return
    text = f"{agent}: {missed} of {total} responses contain no answer in the expected form"
    best = min((candidate for candidate in rows if _missed(candidate)[1]), key=_share_missed)
    if _share_missed(row) - _share_missed(best) > _APART:
        few, of = _missed(best)
        yield (
            ("no_answer", agent, "apart"),
            f"{text}, of {best['agent']} {few} of {of}; ω takes this difference in form for one in "
            "capability, so agree on a form that both know, or let the verifier accept both",
        )
    else:
        yield ("no_answer", agent), f"{text}; its reward measures the form more than the answer"


def _missed(row: Mapping[str, Any]) -> tuple[int, int]:
    return row["outcomes"].get("no_answer", 0), row["scored"] + row["unscored"]


def _share_missed(row: Mapping[str, Any]) -> float:
    missed, total = _missed(row)
    return missed / total


def _counts(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in outcomes.items())

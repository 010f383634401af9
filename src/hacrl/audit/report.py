"""What people see of an audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Protocol, TypeVar

from rich.console import Console

from hacrl.audit.counting import Findings, Kind, share
from hacrl.audit.making import said_by
from hacrl.audit.tries import Audited, Expected
from hacrl.config.tasks import Task
from hacrl.console.terminal import make_table, say
from hacrl.records import Outcome, Prompt, Verdict

__all__ = ["print_findings", "print_outcomes"]

_SHOWN = 100
"""Characters of a text that an example shows."""


class _Row(Protocol):
    @property
    def prompt(self) -> Prompt: ...


_R = TypeVar("_R", bound=_Row)


def print_outcomes(
    rows: Sequence[Audited], tasks: Mapping[str, Task], examples: int, console: Console
) -> None:
    """A table of outcomes by task, then examples of each outcome."""
    outcomes = [o for o in Outcome if any(row.verdict.outcome is o for row in rows)]
    table = make_table(console)
    table.add_column("task")
    for title in ("rows", *outcomes):
        table.add_column(title, justify="right", no_wrap=True)
    groups = {name: [row for row in rows if row.prompt.task == name] for name in tasks}
    if len(groups) > 1:
        groups["all"] = list(rows)
    for name, group in groups.items():
        counts = Counter(row.verdict.outcome for row in group)
        cells = (share(counts[o], len(group)) for o in outcomes)
        table.add_row(name, f"{len(group):,}", *cells)
    console.print(table)
    for outcome in outcomes:
        matching = [row for row in rows if row.verdict.outcome is outcome]
        if examples:
            say(console, f"\n{outcome}: {len(matching):,} of {len(rows):,}, for example")
        for row in _in_turn(matching)[:examples]:
            _example(row.prompt, row.response, row.verdict, tasks, console)


def print_findings(
    findings: Findings, tasks: Mapping[str, Task], examples: int, console: Console
) -> None:
    """Print what is wrong with reference answers and verifiers, by kind with examples."""
    if findings.tried:
        tried = len({row.prompt.id for row in findings.tried})
        right = sum(row.attempt.expected is Expected.RIGHT for row in findings.tried)
        wrong = sum(row.attempt.expected is Expected.WRONG for row in findings.tried)
        say(
            console,
            f"\nreference answers varied: {tried:,}, into right responses: {right:,}, "
            f"into wrong responses: {wrong:,}",
        )
    _print_kinds(
        "false negatives: right, but not rewarded",
        findings.kinds(Expected.RIGHT),
        tasks,
        examples,
        console,
    )
    _print_kinds(
        "false positives: wrong, but rewarded",
        findings.kinds(Expected.WRONG),
        tasks,
        examples,
        console,
    )
    _print_unjudged(findings, examples, tasks, console)
    strict = [kind for kind in findings.kinds(Expected.STRICT) if kind.faults]
    if strict:
        say(console, "\nstrict on purpose: a person might accept these, the verifier does not")
        for kind in strict:
            example = kind.faults[0]
            gold = _shown(said_by(tasks[example.prompt.task], example.prompt.gold))
            say(console, f"  {kind.name}, such as {_shown(example.attempt.response)} for {gold}")
    say(console, f"\n{_sum(findings)}")


def _print_kinds(
    title: str,
    kinds: Sequence[Kind],
    tasks: Mapping[str, Task],
    examples: int,
    console: Console,
) -> None:
    faulty = [kind for kind in kinds if kind.faults]
    total = sum(kind.tried for kind in kinds)
    if not total:
        return
    count = sum(len(kind.faults) for kind in kinds)
    say(console, f"\n{title}: {share(count, total)} of {total:,}")
    if not faulty:
        return
    table = make_table(console)
    table.add_column("  kind")
    for name in ("tried", "found"):
        table.add_column(name, justify="right", no_wrap=True)
    for kind in faulty:
        table.add_row(f"  {kind.name}", f"{kind.tried:,}", share(len(kind.faults), kind.tried))
    console.print(table, markup=False)
    for kind in faulty if examples else ():
        say(console, f"  {kind.name}, for example")
        for row in _in_turn(kind.faults)[:examples]:
            _example(row.prompt, row.attempt.response, row.verdict, tasks, console)


def _print_unjudged(
    findings: Findings, examples: int, tasks: Mapping[str, Task], console: Console
) -> None:
    if not findings.unjudged:
        return
    say(
        console,
        f"\ncannot be judged: {share(len(findings.unjudged), len(findings.golds))} of "
        f"{len(findings.golds):,} reference answers",
    )
    for reason, count in Counter(row.reason for row in findings.unjudged).most_common():
        say(console, f"  {count:,}: {reason}")
        named = [row for row in findings.unjudged if row.reason == reason]
        for row in _in_turn(named)[:examples]:
            gold = said_by(tasks[row.prompt.task], row.prompt.gold)
            say(console, f"    {row.prompt.id}  {_shown(gold)}")


def _sum(findings: Findings) -> str:
    if findings.none:
        return "No findings: right responses were rewarded, wrong ones were not."
    counts = {
        "false positives": findings.false_positives,
        "false negatives": findings.false_negatives,
        "reference answers that are not scored as right": len(findings.not_right),
        "reference answers that cannot be judged": len(findings.unjudged),
    }
    return f"Findings: {', '.join(f'{name}: {n:,}' for name, n in counts.items() if n)}."


def _example(
    prompt: Prompt, response: str, verdict: Verdict, tasks: Mapping[str, Task], console: Console
) -> None:
    gold = said_by(tasks[prompt.task], prompt.gold)
    answer = "none" if verdict.answer is None else _shown(verdict.answer)
    reward = "unscored" if verdict.reward is None else f"{verdict.reward:g}"
    say(console, f"  {prompt.id}  reward {reward}")
    say(console, f"    reference {_shown(gold)}")
    say(console, f"    answer    {answer}")
    say(console, f"    response  {_shown(response, end=True)}")


def _in_turn(rows: Sequence[_R]) -> list[_R]:
    """A row of each task, then another of each, so that few examples show many tasks."""
    groups: dict[str, list[_R]] = {}
    for row in rows:
        groups.setdefault(row.prompt.task, []).append(row)
    return [row for turn in zip_longest(*groups.values()) for row in turn if row is not None]


def _shown(text: str, *, end: bool = False) -> str:
    """A text from outside on one line of a terminal, from its beginning or up to its end."""
    line = " ".join(text.split())
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    if len(line) <= _SHOWN:
        return line
    return f"…{line[1 - _SHOWN :]}" if end else f"{line[: _SHOWN - 1]}…"

"""`hacrl verify`: what the reward makes of given responses, before anything is trained on it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from hacrl.config.schema import Verification
from hacrl.config.tasks import Task
from hacrl.errors import UserError
from hacrl.records import Outcome, Prompt, Verdict
from hacrl.tasks import Problem, load_problems, load_task, to_prompts
from hacrl.tasks.fields import find
from hacrl.tasks.files import file_rows
from hacrl.terminal import is_live, make_table, say
from hacrl.verify import VerifierPool, make_pool
from hacrl.verify.extract import extract_answer, extract_gold

__all__ = [
    "Audited",
    "audit_golds",
    "audit_responses",
    "print_report",
    "run_audit",
    "write_verdicts",
]

Tell = Callable[[int, int], None]
"""Is told how many responses of how many have been scored."""

_AT_ONCE = 256
"""Responses between two reports of progress."""
_SHOWN = 100
"""Characters of a text that an example shows."""


@dataclass(frozen=True, slots=True)
class Audited:
    """A response with the verdict on it."""

    prompt: Prompt
    response: str
    verdict: Verdict


def audit_golds(tasks: Mapping[str, Task], rule: Verification, tell: Tell) -> list[Audited]:
    """Score the golds against themselves: everything should be right.

    The response to a problem is its worked solution if there is one that ends in an answer, else
    the gold. A gold that is a bare answer is put in a box where it is not right as it stands.

    Raises:
        UserError: a source cannot be read.
    """
    pairs: list[tuple[Prompt, str]] = []
    bare: list[bool] = []
    for name, task in tasks.items():
        problems = load_problems(name, task)
        marker = _marker(task)
        for prompt, problem in zip(to_prompts(name, task, problems), problems, strict=True):
            complete = _complete(problem, marker)
            pairs.append((prompt, complete or problem.gold))
            bare.append(complete is None)
    with _pool(tasks, rule) as pool:
        verdicts = _verify(pool, pairs, tell)
        again = [
            i
            for i, verdict in enumerate(verdicts)
            if bare[i] and verdict.outcome is not Outcome.RIGHT
        ]
        boxed = [(pairs[i][0], rf"\boxed{{{pairs[i][1]}}}") for i in again]
        for i, pair, verdict in zip(again, boxed, pool.verify(boxed), strict=True):
            # A verifier that reads no boxes has judged the gold as it stands.
            if verdict.outcome is not Outcome.NO_ANSWER:
                pairs[i], verdicts[i] = pair, verdict
    return [Audited(*pair, verdict) for pair, verdict in zip(pairs, verdicts, strict=True)]


def audit_responses(
    tasks: Mapping[str, Task], rule: Verification, path: Path, field: str, tell: Tell
) -> list[Audited]:
    """Score the responses of a file.

    A row belongs to the prompt that its field `prompt_id` names (as in a run's rollouts); where
    there is no such field, the n-th row belongs to the n-th prompt of the tasks.

    Args:
        field: the field that holds the response.

    Raises:
        UserError: a source or the file cannot be read, a row has no response, or rows and prompts
            do not match.
    """
    prompts = [prompt for name, task in tasks.items() for prompt in load_task(name, task)]
    pairs = _paired(path, field, prompts)
    with _pool(tasks, rule) as pool:
        verdicts = _verify(pool, pairs, tell)
    return [Audited(*pair, verdict) for pair, verdict in zip(pairs, verdicts, strict=True)]


def print_report(
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
        cells = (_share(counts[o], len(group)) for o in outcomes)
        table.add_row(name, f"{len(group):,}", *cells)
    console.print(table)
    for outcome in outcomes:
        found = [row for row in rows if row.verdict.outcome is outcome]
        if examples:
            say(console, f"\n{outcome}: {len(found):,} of {len(rows):,}, for example")
        for row in _in_turn(found)[:examples]:
            gold = extract_gold(row.prompt.gold, _marker(tasks[row.prompt.task]))
            answer = "none" if row.verdict.answer is None else _shown(row.verdict.answer)
            reward = "unscored" if row.verdict.reward is None else f"{row.verdict.reward:g}"
            say(console, f"  {row.prompt.id}  reward {reward}")
            say(console, f"    gold      {_shown(gold)}")
            say(console, f"    answer    {answer}")
            say(console, f"    response  {_shown(row.response, end=True)}")


def write_verdicts(rows: Sequence[Audited], path: Path) -> None:
    """One JSON object per response.

    Raises:
        UserError: the file cannot be written.
    """
    try:
        with path.open("w", encoding="utf-8") as file:
            for row in rows:
                content = {
                    "prompt_id": row.prompt.id,
                    "task": row.prompt.task,
                    "outcome": row.verdict.outcome,
                    "reward": row.verdict.reward,
                    "answer": row.verdict.answer,
                    "gold": row.prompt.gold,
                    "response": row.response,
                }
                file.write(json.dumps(content) + "\n")
    except OSError as error:
        raise UserError(f"--out {path}: cannot be written: {error.strerror}") from error


def run_audit(
    tasks: Mapping[str, Task],
    rule: Verification,
    console: Console,
    *,
    responses: Path | None,
    field: str,
    examples: int,
    out: Path | None,
) -> None:
    """The command: score, print the report, write the verdicts.

    Raises:
        UserError: see `audit_golds`, `audit_responses` and `write_verdicts`.
    """
    if out is not None and not out.parent.is_dir():
        raise UserError(f"--out {out}: there is no folder {out.parent}")
    bar = Progress(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console)
    bar.disable = not is_live(console)
    task = bar.add_task("", total=None)
    with bar:

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        if responses is None:
            rows = audit_golds(tasks, rule, tell)
        else:
            rows = audit_responses(tasks, rule, responses, field, tell)
    print_report(rows, tasks, examples, console)
    if out is not None:
        write_verdicts(rows, out)
        say(console, f"\nevery verdict is in {out}")


def _pool(tasks: Mapping[str, Task], rule: Verification) -> VerifierPool:
    # A failing scorer is what the audit is to show, so no share of errors stops it.
    return make_pool(tasks, rule.model_copy(update={"max_errors": 1.0}))


def _verify(pool: VerifierPool, pairs: Sequence[tuple[Prompt, str]], tell: Tell) -> list[Verdict]:
    verdicts: list[Verdict] = []
    tell(0, len(pairs))
    for start in range(0, len(pairs), _AT_ONCE):
        verdicts += pool.verify(pairs[start : start + _AT_ONCE])
        tell(len(verdicts), len(pairs))
    return verdicts


def _marker(task: Task) -> str | None:
    return getattr(task.verifier, "marker", None)


def _complete(problem: Problem, marker: str | None) -> str | None:
    """The solution or the gold, whichever first says itself where its answer stands."""
    for text in (problem.solution, problem.gold):
        if text is not None and extract_answer(text, marker) is not None:
            return text
    return None


def _paired(path: Path, field: str, prompts: Sequence[Prompt]) -> list[tuple[Prompt, str]]:
    by_id = {prompt.id: prompt for prompt in prompts}
    pairs: list[tuple[Prompt | None, str]] = []
    for row in file_rows(path):
        text = find(row.fields, field)
        if not isinstance(text, str):
            fields = ", ".join(row.fields) or "none"
            raise UserError(
                f"{row.place}: no text in a field {field!r}; the fields are: {fields}\n"
                "Name the one that holds the response with --field"
            )
        name = row.fields.get("prompt_id")
        prompt = by_id.get(name) if isinstance(name, str) else None
        if name is not None and prompt is None:
            raise UserError(
                f"{row.place}: prompt_id {name!r} is no prompt of the tasks, whose ids are like "
                f"{prompts[0].id!r}"
            )
        pairs.append((prompt, text))
    if all(prompt is not None for prompt, _ in pairs) and pairs:
        return [(prompt, text) for prompt, text in pairs if prompt is not None]
    if len(pairs) != len(prompts):
        raise UserError(
            f"{path}: holds {len(pairs)} responses for {len(prompts)} prompts; give one for each "
            f"in order, or name the prompt in a field prompt_id, such as {prompts[0].id!r}"
        )
    return [(prompt, text) for prompt, (_, text) in zip(prompts, pairs, strict=True)]


def _in_turn(rows: Sequence[Audited]) -> list[Audited]:
    """A row of each task, then another of each, so that few examples show many tasks."""
    groups: dict[str, list[Audited]] = {}
    for row in rows:
        groups.setdefault(row.prompt.task, []).append(row)
    return [row for turn in zip_longest(*groups.values()) for row in turn if row is not None]


def _share(count: int, total: int) -> str:
    """Count and share. Rounding makes a share neither nothing nor everything."""
    if not count:
        return "0"
    share = count / total
    if 0.9995 <= share < 1:
        return f"{count:,} (>99.9%)"
    return f"{count:,} (<0.1%)" if share < 0.0005 else f"{count:,} ({share:.1%})"


def _shown(text: str, *, end: bool = False) -> str:
    """A text from outside on one line of a terminal, from its beginning or up to its end."""
    line = " ".join(text.split())
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    if len(line) <= _SHOWN:
        return line
    return f"…{line[1 - _SHOWN :]}" if end else f"{line[: _SHOWN - 1]}…"

"""Writes the tables of docs/audit.md: what `math` gets wrong on the seven benchmarks, by kind.

    python -m scripts.audit_page --data DIR

DIR holds a folder per benchmark with its `test.jsonl`. What stands between the page's two comments
is replaced; equal code and data give an equal page.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from hacrl.audit import Expected, Findings, Kind, audit_tasks
from hacrl.audit.changes import LAST_DIGIT
from hacrl.audit.counting import by_kind
from hacrl.audit.making import last_digits
from hacrl.audit.running import Tell, open_pool, score_tries
from hacrl.config.rollouts import Verification
from hacrl.console.terminal import quieten_libraries
from hacrl.records import Outcome
from hacrl.tasks import benchmark_tasks

PAGE = Path(__file__).resolve().parents[1] / "docs" / "audit.md"
BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"

_PATIENT = Verification(seconds=60)
"""A busy machine should not change the figures."""


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the benchmarks")
    parser.add_argument("--bench", default="all", help="names, with commas between them")
    parser.add_argument(
        "--rows", type=int, default=1000, help="reference answers varied of each benchmark"
    )
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(arguments)
    quieten_libraries()
    found, changed = measured(options.bench.split(","), options.data, options.rows)
    text = options.page.read_text("utf-8")
    most = f"At most {options.rows:,} reference answers of each benchmark"
    said = f"{most}; a cell is found/tried.\n\n"
    options.page.write_text(replaced(text, said + tables(found, changed)), "utf-8")


def measured(
    names: Sequence[str], data: Path, rows: int
) -> tuple[dict[str, Findings], dict[str, Kind]]:
    """For each benchmark: what the audit finds, and all reference answers with the last
    digit changed."""
    tasks = benchmark_tasks(names, data)
    found: dict[str, Findings] = {}
    changed: dict[str, Kind] = {}
    for name, task in tasks.items():
        alone = {name: task}
        found[name] = audit_tasks(alone, _PATIENT, rows, partial(_told_of, name))
        with open_pool(alone, _PATIENT) as pool:
            pairs = last_digits(alone)
            tried = score_tries(pool, pairs, _told(f"{name} {LAST_DIGIT}"))
        changed[name] = next(iter(by_kind(tried)), Kind(LAST_DIGIT, 0, ()))
    return found, changed


def replaced(page: str, text: str) -> str:
    """The page with other tables."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def tables(found: Mapping[str, Findings], changed: Mapping[str, Kind]) -> str:
    """All tables in Markdown."""
    wrongs = {name: findings.kinds(Expected.RIGHT) for name, findings in found.items()}
    rights = {name: findings.kinds(Expected.WRONG) for name, findings in found.items()}
    return "\n".join(
        [
            "### By benchmark\n",
            _summary(found, wrongs, rights),
            "\n### False negatives by kind\n",
            _kinds(wrongs),
            "\n### False positives by kind\n",
            _kinds(rights),
            "\n### The last digit changed, of every reference answer\n",
            _last_digits(changed),
        ]
    )


def _summary(
    found: Mapping[str, Findings],
    wrongs: Mapping[str, Sequence[Kind]],
    rights: Mapping[str, Sequence[Kind]],
) -> str:
    rows: list[tuple[str, list[int]]] = []
    for name, findings in found.items():
        right = sum(row.verdict.outcome is Outcome.RIGHT for row in findings.golds)
        tried = len({row.prompt.id for row in findings.tried})
        counts = (len(findings.golds), right, len(findings.unjudged), tried)
        rows.append((f"`{name}`", [*counts, *_counts(wrongs[name]), *_counts(rights[name])]))
    total = ("all", [sum(column) for column in zip(*(cells for _, cells in rows), strict=True)])
    head = (
        *("benchmark", "reference answers", "right", "cannot be judged", "tried"),
        *("right answers", "not rewarded", "wrong answers", "rewarded"),
    )
    return _table(head, [[name, *cells] for name, cells in (*rows, total)])


def _counts(kinds: Iterable[Kind]) -> tuple[int, int]:
    each = [(kind.tried, len(kind.faults)) for kind in kinds]
    return sum(tried for tried, _ in each), sum(amiss for _, amiss in each)


def _kinds(found: Mapping[str, Sequence[Kind]]) -> str:
    by_name = {name: {kind.name: kind for kind in kinds} for name, kinds in found.items()}
    names = {kind.name for kinds in found.values() for kind in kinds}
    sums = {
        name: _counts(kinds[name] for kinds in by_name.values() if name in kinds) for name in names
    }
    amiss = sorted((n for n in names if sums[n][1]), key=lambda n: (-sums[n][1], n))
    rows = []
    for name in amiss:
        each = (kinds.get(name) for kinds in by_name.values())
        cells = (f"{len(kind.faults)}/{kind.tried}" if kind else "" for kind in each)
        example = next(k[name].faults[0] for k in by_name.values() if name in k and k[name].faults)
        shown = example.verdict.answer or example.attempt.response
        rows.append([name, *cells, "/".join(f"{n:,}" for n in reversed(sums[name])), _code(shown)])
    head = ("kind", *(f"`{name}`" for name in found), "all", "for example")
    clean = ", ".join(sorted(names - set(amiss)))
    return f"{_table(head, rows)}\n\nNone of: {clean}."


def _last_digits(changed: Mapping[str, Kind]) -> str:
    rows = [(f"`{name}`", kind.tried, len(kind.faults)) for name, kind in changed.items()]
    total = ("all", sum(tried for _, tried, _ in rows), sum(paid for *_, paid in rows))
    answers = (row.verdict.answer or "" for kind in changed.values() for row in kind.faults)
    named = ", ".join(dict.fromkeys(_code(answer) for answer in answers))
    table = _table(("benchmark", "responses", "rewarded"), [*rows, total])
    return f"{table}\n\nRewarded: {named or 'none'}."


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [_row(head), _row(["---", *["---:"] * (len(head) - 1)])]
    for row in rows:
        lines.append(_row([f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row]))
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    line = " ".join(text.split())
    line = line if len(line) <= 60 else f"{line[:59]}…"
    fence = "``" if "`" in line else "`"
    return f"{fence}{line}{fence}".replace("|", "\\|")


def _told_of(name: str, part: str) -> Tell:
    return _told(f"{name} {part}")


def _told(part: str) -> Tell:
    def tell(done: int, total: int) -> None:
        if sys.stderr.isatty() or done == total:
            print(f"\r{part}: {done:,} of {total:,}", end="", file=sys.stderr, flush=True)
            print(file=sys.stderr) if done == total else None

    return tell


if __name__ == "__main__":
    main(sys.argv[1:])

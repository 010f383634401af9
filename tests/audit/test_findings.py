"""What the audit finds, by verifier; with verifiers whose faults are known."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hacrl.audit import Findings, audit_tasks
from hacrl.audit.judgeable import looks_like_no_answer
from hacrl.audit.running import audit_tries, score_golds
from hacrl.audit.tries import Expected
from hacrl.cli.app import app
from hacrl.config.rollouts import Verification
from hacrl.config.tasks import Task
from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify import VerifierPool
from hacrl.verify.base import Verifier
from hacrl.verify.extract import extract_answer, extract_gold


def silent(part: str) -> Any:
    return lambda done, total: None


def task_of(folder: Path, verifier: dict[str, Any], golds: list[object]) -> Task:
    path = folder / "golds.jsonl"
    path.write_text("".join(json.dumps({"question": "?", "answer": gold}) + "\n" for gold in golds))
    return Task.model_validate(
        {"source": {"type": "jsonl", "path": str(path)}, "verifier": verifier}
    )


def found_by(
    folder: Path, verifier: dict[str, Any], golds: list[object], rows: int = 99
) -> Findings:
    return audit_tasks({"t": task_of(folder, verifier, golds)}, Verification(), rows, silent)


@dataclass(frozen=True)
class Stub(Verifier):
    """Decides by the extracted answer: `any` pays every one, `same` the very spelling alone."""

    pays: str
    correct: float = 1.0
    wrong: float = 0.0

    def screen(self, prompt: Prompt, response: str) -> Verdict:
        answer = extract_answer(response, "####")
        if answer is None:
            return self.verdict(Outcome.NO_ANSWER)
        right = self.pays == "any" or answer == extract_gold(prompt.gold, "####")
        return self.verdict(Outcome.RIGHT if right else Outcome.WRONG, answer)


def stubbed(folder: Path, pays: str, golds: list[object]) -> Findings:
    """What is found in tasks of type math that a stub judges."""
    tasks = {"t": task_of(folder, {"type": "math"}, golds)}
    with VerifierPool({"t": Stub(pays)}) as pool:
        scored = score_golds(pool, tasks, silent("golds"))
        return Findings(scored, *audit_tries(pool, tasks, scored, 99, silent("tries")))


GOLDS: list[object] = [
    "72",
    r"\frac{3}{4}",
    "x^2+2x-7",
    r"\text{even}",
    "(1,2)",
    r"\{1,2\}",
    "y=2x",
]


def test_a_verifier_that_pays_all_is_found_by_every_change(tmp_path: Path) -> None:
    findings = stubbed(tmp_path, "any", GOLDS)
    assert findings.false_negatives == 0
    kinds = {kind.name: kind for kind in findings.kinds(Expected.WRONG)}
    free = {"nothing", "no answer", "taken back in the reasoning"}
    free |= {kind for kind in kinds if kind.startswith("reasoning that was cut")}
    assert all(bool(kind.faults) != (name in free) for name, kind in kinds.items())
    assert len(kinds["a digit changed"].faults) >= 4
    assert not findings.none


def test_a_verifier_of_spellings_is_found_by_every_other_spelling(tmp_path: Path) -> None:
    findings = stubbed(tmp_path, "same", GOLDS)
    assert findings.false_positives == 0
    kinds = {kind.name: kind for kind in findings.kinds(Expected.RIGHT)}
    for name in (r"\dfrac", "a slash", "another decimal place", "another order", "sides exchanged"):
        assert kinds[name].faults, name
    assert not kinds["in a box"].faults
    assert kinds["in a box"].tried == len(GOLDS)


def test_golds_are_named_that_nothing_can_be_judged_by(tmp_path: Path) -> None:
    golds = [
        "42",
        "about 3.5 hours",
        "The bakery sells 42 loaves.",
        "Answer: 7",
        "the answer is 8.",
    ]
    findings = stubbed(tmp_path, "same", list(golds))
    assert [one.prompt.gold for one in findings.unjudged] == golds[1:3]
    assert {one.prompt.gold for one in findings.tried} == {"42", "Answer: 7", "the answer is 8."}


@pytest.mark.parametrize(
    ("gold", "reason"),
    [
        ("about 3.5 hours", "hedged"),
        ("at least 5", "hedged"),
        (r"\text{approximately } 12 \text{ cm}", "hedged"),
        ("The bakery sells 42 loaves of bread.", "a sentence"),
        ("there are 12", "a sentence"),
        ("It is 5. Then add 3.", "several sentences"),
        ("He will need 3 more eggs", "a sentence"),
    ],
)
def test_what_is_no_answer(gold: str, reason: str) -> None:
    assert reason in (looks_like_no_answer(gold) or "")


@pytest.mark.parametrize(
    "gold",
    [
        *("42", "3.5 hours", "New York City", r"5\text{ square feet}", r"\frac{1}{2}", "x > 3"),
        *(r"\text{all real numbers}", r"\sin x + \cos x", "Evelyn", "SSA", "2 and 3", "6:00 a.m."),
        *(
            r"x \in [0,1] \text{ or } x \ge 5",
            r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}",
            "5 feet 3 inches",
        ),
    ],
)
def test_what_may_be_an_answer(gold: str) -> None:
    assert looks_like_no_answer(gold) is None


@pytest.mark.parametrize("marker", ["####", None])
def test_exact_is_strict_by_name_and_else_clean(tmp_path: Path, marker: str | None) -> None:
    verifier = {"type": "exact", "marker": marker}
    findings = found_by(tmp_path, verifier, ["Yes", "abc 12", "14", "New York", "x"])
    assert [k for k in findings.kinds(Expected.RIGHT) if k.faults] == []
    assert [k for k in findings.kinds(Expected.WRONG) if k.faults] == []
    assert findings.none
    strict = {kind.name for kind in findings.kinds(Expected.STRICT) if kind.faults}
    assert strict >= {"another case", "quotation marks"}


def test_choice_is_clean(tmp_path: Path) -> None:
    findings = found_by(tmp_path, {"type": "choice"}, ["A", "B", "4", "(C)"])
    assert [k.name for k in findings.kinds(Expected.RIGHT) if k.faults] == []
    assert [k.name for k in findings.kinds(Expected.WRONG) if k.faults] == []
    kinds = Counter(one.attempt.kind for one in findings.tried)
    assert kinds["bold label"] == 4
    assert kinds["another letter, bold label"] == 16


def test_a_choice_gold_that_is_no_option_is_named(tmp_path: Path) -> None:
    findings = found_by(tmp_path, {"type": "choice", "options": "AB"}, ["A", "Paris"])
    (one,) = findings.unjudged
    assert one.prompt.gold == "Paris"
    assert one.reason == "the reference answer names none of the options AB"


def test_tests_that_let_anything_pass_are_named(tmp_path: Path) -> None:
    good = "assert add(1, 2) == 3\nassert add(2, 2) == 4"
    idle = "cases = {'inputs': [1], 'outputs': [2]}"
    uncalled = "def check(candidate):\n    assert candidate(1) == 2"
    findings = found_by(tmp_path, {"type": "code"}, [good, idle, uncalled])
    assert [one.prompt.gold for one in findings.unjudged] == [idle, uncalled]
    assert len(findings.tests) == 3
    assert (findings.false_positives, findings.not_right) == (0, [])
    kinds = Counter(one.attempt.kind for one in findings.tried)
    assert {"defines nothing", "returns None", "returns its first argument"} <= kinds.keys()
    assert set(kinds.values()) == {1}


def test_a_scorer_that_pays_any_answer_is_named(tmp_path: Path) -> None:
    def audited(name: str, size: int) -> Findings:
        source = {"type": "reasoning_gym", "name": name, "size": size, "seed": 1}
        task = Task.model_validate({"source": source, "verifier": {"type": "reasoning_gym"}})
        return audit_tasks({"g": task}, Verification(), 99, silent)

    findings = audited("game_of_life_halting", 4)
    assert "False" in {one.prompt.gold for one in findings.unjudged}
    assert {one.reason for one in findings.unjudged} == {
        "the scorer of game_of_life_halting accepts any answer to this problem"
    }
    assert audited("chain_sum", 3).none


@pytest.mark.parametrize(("function", "found"), [("pays_all", 3), ("pays_none", 0)])
def test_a_function_that_pays_nonsense_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, found: int
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    verifier = {"type": "python", "function": f"rewards_on_trial:{function}"}
    findings = found_by(tmp_path, verifier, ["5"])
    assert findings.false_positives == found


def test_a_sum_is_tried_as_its_first_part_is(tmp_path: Path) -> None:
    verifier = {"type": "sum", "parts": [{"verifier": {"type": "choice"}, "weight": 2}]}
    findings = found_by(tmp_path, verifier, ["B"])
    assert findings.none
    assert any(one.attempt.kind == "bold label" for one in findings.tried)


def test_math_is_tried_and_finds_known_answers_right(tmp_path: Path) -> None:
    findings = found_by(tmp_path, {"type": "math"}, ["72", r"\frac{1}{2}"])
    kinds = {kind.name: kind for kind in findings.kinds(Expected.RIGHT)}
    for name in ("in a box", "behind the marker, bold", "a slash", "a name for it", "dollar signs"):
        assert kinds[name].tried, name
        assert not kinds[name].faults, name
    wrong = {kind.name: kind for kind in findings.kinds(Expected.WRONG)}
    for name in ("a digit changed", "ten times as much", "turned upside down", "nothing"):
        assert wrong[name].tried, name
        assert not wrong[name].faults, name


def test_few_golds_are_tried_where_few_are_asked_for_and_the_same_again(tmp_path: Path) -> None:
    first, second = (
        found_by(tmp_path, {"type": "choice"}, ["A", "B", "C", "D"] * 5, rows=3) for _ in range(2)
    )
    assert len({one.prompt.id for one in first.tried}) == 3
    assert first.tried == second.tried
    assert len(first.golds) == 20


def audit(tmp_path: Path, verifier: dict[str, Any], golds: list[object], *options: str) -> Result:
    task = task_of(tmp_path, verifier, golds).model_dump(mode="json")
    raw = {"name": "r", "steps": 1, "prompts_per_step": 1, "tasks": {"t": task}}
    path = tmp_path / "recipe.yaml"
    path.write_text(json.dumps(raw | {"agents": {"a": {"model": "none"}}}))
    return CliRunner().invoke(app, ["verify", str(path), *options])


def test_the_report_says_what_is_found_and_strict_exits_with_1(tmp_path: Path) -> None:
    result = audit(tmp_path, {"type": "choice"}, ["A", "Paris"], "--out", str(tmp_path / "o.jsonl"))
    assert result.exit_code == 0
    assert "reference answers varied: 1, into right responses" in result.output
    assert "false negatives: right, but not rewarded: 0 of " in result.output
    assert "cannot be judged: 1 (50.0%) of 2 reference answers" in result.output
    reason = "the reference answer names none of the options ABCDE"
    assert f"  1: {reason}\n    t/1  Paris\n" in result.output
    assert "Findings: reference answers that cannot be judged: 1." in result.output
    rows = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert [row["outcome"] for row in rows[:2]] == ["right", "not_verifiable"]
    assert {row["expected"] for row in rows[2:]} == {"right", "wrong", "strict"}
    strict = audit(tmp_path, {"type": "choice"}, ["A", "Paris"], "--strict", "--examples", "0")
    assert strict.exit_code == 1
    assert "Findings: " in strict.output


def test_a_clean_audit_says_so(tmp_path: Path) -> None:
    result = audit(tmp_path, {"type": "choice"}, ["A", "B"], "--strict")
    assert result.exit_code == 0
    assert "No findings: right responses were rewarded, wrong ones were not." in result.output
    assert "strict on purpose" in result.output


def test_false_rights_are_shown_by_kind_with_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    verifier = {"type": "python", "function": "rewards_on_trial:pays_all"}
    result = audit(tmp_path, verifier, ["5", "6"], "--examples", "1")
    assert "false positives: wrong, but rewarded: 6 (100.0%) of 6" in result.output
    assert re.search(r"^ *nonsense: qwzx +2 +2 \(100\.0%\)$", result.output, re.MULTILINE)
    assert "  nonsense: qwzx, for example\n  t/0  reward 1\n" in result.output
    assert "Findings: false positives: 6." in result.output


def test_strict_is_about_reference_answers(tmp_path: Path) -> None:
    result = audit(tmp_path, {"type": "choice"}, ["A"], "--strict", "--responses", "x.jsonl")
    assert result.exit_code == 2
    assert "--strict is for reference answers" in result.stderr

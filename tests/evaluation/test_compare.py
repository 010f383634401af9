"""Paired comparison from stored responses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from hacrl.config import AgentSpec
from hacrl.errors import UserError
from hacrl.evaluation.answers import Answer
from hacrl.evaluation.compare import compare, compare_answers, paired
from hacrl.evaluation.jobs import Job, chosen_tasks, load_job
from hacrl.evaluation.settings import Settings
from hacrl.evaluation.store import open_store
from hacrl.evaluation.targets import Target, find_targets, target_fingerprint
from tests.evaluation.test_estimators import make_answer


def of(rights: Sequence[int], **changes: object) -> list[Answer]:
    """One answer to each of several problems."""
    return [
        make_answer(f"p/{i}", 0, "4" if right else "5", **changes) for i, right in enumerate(rights)
    ]


def test_gained_and_lost_problems_by_hand() -> None:
    found = compare_answers("b", ("old", of([1, 1, 0, 0, 0])), ("new", of([1, 0, 1, 1, 0])), "avg")
    assert found is not None
    assert (found.baseline, found.agent, found.problems) == ("old", "new", 5)
    assert (found.before, found.after) == (0.4, 0.6)
    assert found.difference == pytest.approx(0.2)
    assert (found.gained, found.lost) == (2, 1)
    assert found.low < 0 < found.high


def test_only_problems_that_both_have_answered_count() -> None:
    found = compare_answers("b", ("old", of([0, 0, 1])), ("new", of([1, 1])), "avg")
    assert found is not None
    assert (found.problems, found.before, found.gained) == (2, 0.0, 2)
    assert compare_answers("b", ("old", of([1])), ("new", of([1], gold="5")), "avg") is None


def target(origin: str, agent: str) -> Target:
    return Target(f"{origin}/{agent}", agent, origin, AgentSpec(model="x/y"))


def labels(targets: list[Target]) -> list[tuple[str, str]]:
    return [(one.label, other.label) for one, other in paired(targets)]


def test_agents_of_the_same_name_are_paired_else_all_with_the_first() -> None:
    run = [target("a", "kim"), target("a", "lee")]
    other = [target("b", "lee"), target("b", "kim")]
    assert labels(run + other) == [("a/kim", "b/kim"), ("a/lee", "b/lee")]
    assert labels(run) == [("a/kim", "a/lee")]
    assert labels([run[0], target("c", "tom")]) == [("a/kim", "c/tom")]


@pytest.fixture
def asked(tmp_path: Path) -> Job:
    path = tmp_path / "p.jsonl"
    rows = [{"question": f"{i}?", "answer": "4"} for i in range(6)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ((name, task),) = chosen_tasks([], [], [path], None)[0].items()
    return load_job(name, task, Settings(), None)


def store(root: Path, folder: Path, job: Job, rights: Sequence[int]) -> None:
    (one,) = find_targets([str(folder)])
    open_store(root, one, target_fingerprint(one), job).add(of(rights))


def test_stored_responses_are_found_by_the_weights(
    reader: Path, writer: Path, asked: Job, tmp_path: Path
) -> None:
    root = tmp_path / "out"
    store(root, reader, asked, [1, 0, 0, 0, 1, 1])
    store(root, writer, asked, [1, 1, 1, 0, 1, 0])
    texts = [str(reader), str(writer)]
    (found,) = compare(texts, root)
    assert (found.agent, found.benchmark, found.gained, found.lost) == ("writer", "p", 2, 1)
    (same,) = compare(texts, root, ["p"])
    assert same == found
    with pytest.raises(UserError, match="have no problem that both have answered"):
        compare(texts, root, ["gsm8k"])
    with pytest.raises(UserError, match=r"hacrl eval .*reader .*writer --bench"):
        compare(texts, tmp_path / "elsewhere")
    with pytest.raises(UserError, match="at least two agents"):
        compare([str(reader)], root)


def test_other_settings_are_not_compared(
    reader: Path, writer: Path, asked: Job, tmp_path: Path
) -> None:
    store(tmp_path, reader, asked, [1, 0])
    other = Job(asked.name, asked.task, asked.prompts, Settings(max_new_tokens=9))
    store(tmp_path, writer, other, [1, 0])
    with pytest.raises(UserError, match="with the same settings"):
        compare([str(reader), str(writer)], tmp_path)


def test_a_damaged_description_is_named(
    reader: Path, writer: Path, asked: Job, tmp_path: Path
) -> None:
    store(tmp_path, reader, asked, [1])
    (about,) = tmp_path.glob("*/*/evaluation.json")
    about.write_text("{")
    with pytest.raises(UserError, match=r"evaluation\.json: is damaged"):
        compare([str(reader), str(writer)], tmp_path)

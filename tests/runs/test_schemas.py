"""The Parquet files of all steps of a run are one table, whatever came of each step."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hacrl.agents.learning.reporting import LearnReport, LessonRecord
from hacrl.evaluation.answers import Answer
from hacrl.evaluation.store import read_answers, write_answers
from hacrl.records import Outcome, Pool, Prompt, Rollout, Verdict, Verified
from hacrl.runs.folder import RunFolder
from hacrl.runs.schemas import ANSWERS, FAULTS, TAUGHT, VERIFIED

PROMPT = Prompt("p0", "bits", "0+1=", "1")
FULL = Rollout(0, "kim", 0, 3, "1", -0.75, 2, True, "special_token")
BARE = Rollout(0, "kim", 0, 0, "", 0.0, 0, False, None)
LESSON = LessonRecord("kim", "kim", 0, 0, 0.5, 2, "unscored", 1, 0.1, 0.0, 1.0, True, True)
NOTHING = LessonRecord("kim", "kim", 0, 0, 0.0, 0, None, None, None, None, None, False, None)


def pool(step: int, *rows: Verified) -> Pool:
    agents = ("kim",) if rows else ()
    return Pool(step, agents, (PROMPT,), 1, rows)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    for name in ("rollouts", "lessons"):
        (tmp_path / name).mkdir()
    return RunFolder(tmp_path)


def together(folder: Path, schema: Any, rows: int) -> Any:
    """All files of a folder as one table, each of which has the columns of the schema."""
    files = sorted(folder.glob("*.parquet"))
    for file in files:
        assert pq.read_schema(file).equals(schema), file
    table = ds.dataset(folder, format="parquet").to_table()
    assert table.schema.equals(schema)
    assert table.num_rows == rows
    assert pa.concat_tables([pq.read_table(file) for file in files]).equals(table)
    return table


def test_rollouts_of_all_steps(run: RunFolder) -> None:
    unscored = Verdict(None, Outcome.NO_ANSWER, None)
    run.add_rollouts(pool(0, Verified(BARE, unscored)))  # all gaps
    run.add_rollouts(pool(1, Verified(FULL, Verdict(1, Outcome.RIGHT, "1"))))  # a whole number
    run.add_rollouts(pool(2, Verified(FULL, Verdict(0.25, Outcome.WRONG, "7"))))
    run.add_rollouts(pool(3))  # no rows
    table = together(run.path / "rollouts", VERIFIED, 3)
    assert table["answer"].to_pylist() == [None, "1", "7"]
    assert table["reward"].to_pylist() == [None, 1.0, 0.25]
    assert table["length"].to_pylist() == [0, 2, 2]
    assert table["logprob"].to_pylist() == [0.0, -0.75, -0.75]


def test_lessons_of_all_steps(run: RunFolder) -> None:
    run.add_lessons(0, [])
    run.add_lessons(1, [NOTHING])
    run.add_lessons(2, [LESSON])
    table = together(run.path / "lessons", TAUGHT, 2)
    assert table["left_out"].to_pylist() == [None, "unscored"]
    assert table["update"].to_pylist() == [None, 1]


def test_faults_of_all_steps(run: RunFolder) -> None:
    for step, (rollout, reward) in enumerate([(BARE, None), (FULL, 1.0)]):
        of_step = pool(step, Verified(rollout, Verdict(reward, Outcome.WRONG)))
        lesson = dataclasses.replace(NOTHING if rollout is BARE else LESSON, update=0)
        assert run.add_faults(of_step, [LearnReport("kim", {}, (lesson,), (0,))]) is not None
    table = together(run.path / "faults", FAULTS, 2)
    assert table["reward"].to_pylist() == [None, 1.0]
    assert table["left_out"].to_pylist() == [None, "unscored"]


def test_answers_of_all_evaluations(tmp_path: Path) -> None:
    bare = Answer.of(PROMPT, Verified(BARE, Verdict(None, Outcome.TIMEOUT)))
    full = Answer.of(PROMPT, Verified(FULL, Verdict(1.0, Outcome.RIGHT, "1")))
    for number, answers in enumerate([[], [bare], [Answer.unasked(PROMPT, 0)], [full]]):
        path = tmp_path / f"answers-{number}.parquet"
        write_answers(path, answers)
        assert read_answers(path) == answers
    together(tmp_path, ANSWERS, 3)


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.none() | st.integers(0, 1) | st.floats(0, 1),
                st.none() | st.text(st.characters(codec="utf-8"), max_size=5),
                st.none() | st.sampled_from(["empty", "undecodable"]),
                st.integers(0, 2**31 - 1),
            ),
            max_size=2,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_whatever_a_step_holds_it_has_the_same_columns(
    tmp_path_factory: pytest.TempPathFactory, steps: list[list[tuple[Any, Any, Any, int]]]
) -> None:
    run = RunFolder(tmp_path_factory.mktemp("run"))
    (run.path / "rollouts").mkdir()
    for step, rows in enumerate(steps):
        verified = [
            Verified(
                Rollout(0, "kim", i, 0, "", -1.0 * length, length, True, reason),
                Verdict(reward, Outcome.WRONG, answer),
            )
            for i, (reward, answer, reason, length) in enumerate(rows)
        ]
        agents = ("kim",) if rows else ()
        run.add_rollouts(Pool(step, agents, (PROMPT,), max(len(rows), 1), tuple(verified)))
    table = together(run.path / "rollouts", VERIFIED, sum(map(len, steps)))
    assert table["answer"].to_pylist() == [answer for rows in steps for _, answer, _, _ in rows]


def test_every_field_of_a_record_is_a_column() -> None:
    assert TAUGHT.names == ["step", *(field.name for field in dataclasses.fields(LessonRecord))]
    assert ANSWERS.names == [field.name for field in dataclasses.fields(Answer)]
    kept = {field.name for field in dataclasses.fields(Rollout)}
    assert kept < set(VERIFIED.names)

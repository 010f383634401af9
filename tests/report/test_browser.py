"""The sample of rollouts: what is in it, and that it says what is not."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hacrl.report import browser
from hacrl.report.browser import sample_rollouts, spread
from hacrl.report.reading import RunData, read_run
from tests.report.conftest import CopyRun


@pytest.fixture
def run(copy_run: CopyRun) -> RunData:
    return read_run(copy_run(), "pair")


def stored(run: RunData, kind: str, step: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pq.read_table(
        run.path / kind / f"step-{step:06d}.parquet"
    ).to_pylist()
    return rows


@pytest.mark.parametrize(
    ("count", "chosen"),
    [(0, []), (1, [0]), (2, [0, 9]), (4, [0, 3, 6, 9]), (20, list(range(10)))],
)
def test_first_last_and_evenly_between(count: int, chosen: list[int]) -> None:
    assert spread(range(10), count) == chosen


def test_everything_joins_up(run: RunData) -> None:
    sample = sample_rollouts(run, 100)
    assert [step["step"] for step in sample.steps] == [1, 2, 3, 4]
    assert "shown are 16 of the 16 prompts of steps 1, 2, 3, 4" in sample.left_out[0]
    fates = set()
    for shown in sample.steps:
        rollouts = stored(run, "rollouts", shown["step"] - 1)
        lessons = stored(run, "lessons", shown["step"] - 1)
        answers = [(p, a) for p in shown["prompts"] for a in p["answers"]]
        assert len(answers) == len(rollouts) == 2 * 4 * 4
        for prompt, answer in answers:
            (row,) = (
                r
                for r in rollouts
                if (r["prompt_id"], r["agent"], r["sample"])
                == (prompt["id"], answer["agent"], answer["sample"] - 1)
            )
            assert (answer["text"], answer["reward"]) == (row["text"], row["reward"])
            assert (prompt["text"], prompt["gold"]) == (row["prompt_text"], row["gold"])
            assert [lesson["learner"] for lesson in answer["lessons"]] == ["kim", "lee"]
            for lesson in answer["lessons"]:
                (source,) = (
                    le
                    for le in lessons
                    if (le["learner"], le["agent"], le["prompt"], le["sample"])
                    == (lesson["learner"], row["agent"], row["prompt"], row["sample"])
                )
                assert lesson["advantage"] == source["advantage"]
                assert lesson["taught"] == source["teaches"] == (lesson["fate"] == "taught")
                if source["log_ratio"] is not None:
                    assert lesson["ratio"] == pytest.approx(math.exp(source["log_ratio"]))
                    place = (source["below"], source["above"])
                    assert (
                        lesson["clip"]
                        == {
                            (1, 0): "below",
                            (0, 1): "above",
                            (0, 0): "inside",
                        }[place]
                    )
                fates.add(lesson["fate"])
    assert {"taught", "no gradient, clipped", "nothing to learn, the advantage is 0"} <= fates


@pytest.mark.parametrize(
    ("lesson", "fate"),
    [
        ({"left_out": "too_long"}, "left out: too long"),
        ({"log_ratio": None}, "nothing to learn, the advantage is 0"),
        ({"log_ratio": 0.1, "teaches": True}, "taught"),
        ({"log_ratio": 0.1, "above": 1.0}, "no gradient, clipped"),
        ({"log_ratio": -11.0, "below": 1.0}, "no gradient, ratio beyond its limit"),
    ],
)
def test_why_a_row_taught_or_not(lesson: dict[str, object], fate: str) -> None:
    base = {
        "learner": "kim",
        "advantage": 1.0,
        "left_out": None,
        "log_ratio": None,
        "below": 0.0,
        "above": 0.0,
        "teaches": False,
    }
    assert browser._lesson(base | lesson)["fate"] == fate


def test_at_token_level_the_share_of_tokens_is_told() -> None:
    assert browser._clip(0.25, 0.5) == "25% of tokens below, 50% above"
    assert browser._clip(None, None) is None


def test_a_bounded_sample_says_what_is_left_out(run: RunData) -> None:
    sample = sample_rollouts(run, 2)
    assert [(step["step"], len(step["prompts"])) for step in sample.steps] == [(1, 1), (4, 1)]
    (text,) = sample.left_out
    assert "2 of the 8 prompts of steps 1, 4" in text
    assert "2 other stored steps are not shown (--browse N takes more)" in text


def test_none_are_shown_on_request_and_lessons_are_there_all_the_same(run: RunData) -> None:
    sample = sample_rollouts(run, 0)
    assert not sample.steps
    assert sorted(sample.lessons) == [0, 1, 2, 3]


def test_long_texts_are_cut_and_counted(run: RunData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "_LONGEST", 1)
    monkeypatch.setattr(browser, "_SHORTEST", 1)
    sample = sample_rollouts(run, 100)
    texts = [a["text"] for s in sample.steps for p in s["prompts"] for a in p["answers"]]
    cut = [text for text in texts if text.endswith("more characters]")]
    assert cut
    assert f"{len(cut)} responses are cut after 1 characters" in sample.left_out


def test_damaged_files_are_left_out_with_a_note(run: RunData) -> None:
    (run.path / "rollouts" / "step-000001.parquet").write_bytes(b"PAR1")
    (run.path / "lessons" / "step-000002.parquet").unlink()
    sample = sample_rollouts(run, 100)
    assert [step["step"] for step in sample.steps] == [1, 3, 4]
    assert sorted(sample.lessons) == [0, 1, 3]
    assert "rollouts/step-000001.parquet is missing or damaged" in sample.left_out
    (step,) = (step for step in sample.steps if step["step"] == 3)
    assert all(not a["lessons"] for p in step["prompts"] for a in p["answers"])


def test_a_run_without_rollouts_shows_none(run: RunData) -> None:
    for path in (run.path / "rollouts").iterdir():
        Path(path).unlink()
    sample = sample_rollouts(run, 10)
    assert (list(sample.steps), list(sample.left_out)) == ([], [])

"""Putting problems to a model: the batch size, memory, interruption, what is stored."""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hacrl.agents.respondent import Respondent
from hacrl.errors import UserError
from hacrl.evaluation.answers import Answer
from hacrl.evaluation.jobs import Job, chosen_tasks, load_job
from hacrl.evaluation.runner import Result, evaluate
from hacrl.evaluation.settings import Settings
from hacrl.evaluation.targets import find_targets
from hacrl.phases import Interrupted
from hacrl.records import Decoding, Rollout
from tests.evaluation.conftest import save_model

SHORT = Settings(max_new_tokens=8)


class Watching:
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.new: list[int] = []
        self.stored = 0

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, place: str, new: int, *, stored: bool = False) -> None:
        if stored:
            self.stored += new
        else:
            self.new.append(new)


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    path = tmp_path / "sums.jsonl"
    rows = [{"question": "what is " + "1+" * i + "1?", "answer": str(i + 1)} for i in range(12)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def job(path: Path, settings: Settings = SHORT, limit: int | None = None) -> Job:
    ((name, task),) = chosen_tasks([], [], [path], None)[0].items()
    return load_job(name, task, settings, limit)


def ask(model: Path, asked: Job, root: Path, **options: Any) -> tuple[Result, Watching]:
    watching = Watching()
    (result,) = evaluate(find_targets([str(model)]), [asked], root, watching, **options)
    return result, watching


def said(result: Result) -> list[tuple[str, int, str]]:
    return [(answer.problem, answer.sample, answer.response) for answer in result.answers]


def test_the_batch_size_has_no_influence_on_greedy_answers(
    reader: Path, problems: Path, tmp_path: Path
) -> None:
    one, _ = ask(reader, job(problems), tmp_path / "1", batch_size=1)
    all_at_once, watching = ask(reader, job(problems), tmp_path / "64", batch_size=64)
    assert one.answers == all_at_once.answers
    assert watching.new == [12]
    assert [answer.problem for answer in one.answers] == [f"sums/{i}" for i in range(12)]
    assert len({answer.response for answer in one.answers}) > 6  # it does read the problems


def test_several_samples_differ_and_repeat(reader: Path, problems: Path, tmp_path: Path) -> None:
    drawn = replace(SHORT, samples=4, greedy=False)
    first, _ = ask(reader, job(problems, drawn), tmp_path / "1", batch_size=8)
    again, _ = ask(reader, job(problems, drawn), tmp_path / "2", batch_size=8)
    assert said(first) == said(again)
    assert [answer.sample for answer in first.answers[:5]] == [0, 1, 2, 3, 0]
    assert len({answer.response for answer in first.answers}) > 24
    hotter, _ = ask(reader, job(problems, replace(drawn, temperature=0.1)), tmp_path / "1")
    assert said(hotter) != said(first)


def test_memory_that_runs_out_halves_the_batch(
    reader: Path, problems: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, _ = ask(reader, job(problems), tmp_path / "1")
    sizes: list[int] = []
    whole = Respondent.sample

    def sample(self: Respondent, *args: Any, decoding: Decoding, **named: Any) -> list[Rollout]:
        sizes.append(decoding.batch_size)
        if decoding.batch_size > limit:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return whole(self, *args, decoding=decoding, **named)

    monkeypatch.setattr(Respondent, "sample", sample)
    limit = 3
    halved, _ = ask(reader, job(problems), tmp_path / "2", batch_size=8)
    assert sizes == [8, 4, 2, 2]  # found once, and kept for what follows
    assert halved.answers == plain.answers
    limit = 0
    with pytest.raises(UserError, match=r"single response of 8 tokens; lower --max-new-tokens"):
        ask(reader, job(problems), tmp_path / "3")


def test_other_errors_are_not_mistaken_for_lack_of_memory(
    reader: Path, problems: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sample(*args: Any, **named: Any) -> Sequence[Rollout]:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Respondent, "sample", sample)
    with pytest.raises(RuntimeError, match="a bug"):
        ask(reader, job(problems), tmp_path)


@pytest.mark.parametrize("samples", [1, 3])
def test_a_stopped_evaluation_continues_where_it_was(
    reader: Path, problems: Path, tmp_path: Path, samples: int
) -> None:
    settings = replace(SHORT, samples=samples, greedy=samples == 1)
    asked, size = job(problems, settings), 4 * samples
    whole, _ = ask(reader, asked, tmp_path / "whole", batch_size=size)
    answers = iter([False, False, True])
    with pytest.raises(Interrupted):
        ask(reader, asked, tmp_path / "part", batch_size=size, stop=lambda: next(answers))
    rest, watching = ask(reader, asked, tmp_path / "part", batch_size=size)
    assert watching.stored == 8 * samples
    assert watching.new == [4 * samples]
    assert rest.answers == whole.answers


def test_what_is_there_is_not_asked_again_and_needs_no_model(
    reader: Path, problems: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "out"
    ask(reader, job(problems, limit=5), root)
    more, watching = ask(reader, job(problems), root)
    assert (watching.stored, watching.new) == (5, [7])
    monkeypatch.setattr("hacrl.evaluation.asking.load_policy", None)
    again, watching = ask(reader, job(problems), root)
    assert again.answers == more.answers
    assert (watching.stored, watching.new) == (12, [])


def test_other_weights_settings_or_problems_are_asked_anew(
    reader: Path, writer: Path, problems: Path, tmp_path: Path
) -> None:
    root = tmp_path / "out"
    first, _ = ask(reader, job(problems), root)
    other, watching = ask(writer, job(problems), root)
    assert watching.stored == 0
    assert said(other) != said(first)
    _, watching = ask(reader, job(problems, replace(SHORT, max_new_tokens=9)), root)
    assert watching.stored == 0
    problems.write_text(problems.read_text().replace("1+1?", "1+2?", 1))
    changed, watching = ask(reader, job(problems), root)
    assert (watching.stored, watching.new) == (11, [1])
    assert changed.answers[0] == first.answers[0]
    assert changed.answers[1] != first.answers[1]


def test_a_write_that_fails_leaves_nothing_half_done(
    reader: Path, problems: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(table: object, where: Path, **_: object) -> None:
        Path(where).write_bytes(b"PAR1 half")
        raise OSError(errno.ENOSPC, "No space left on device")

    root = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr("pyarrow.parquet.write_table", full)
        with pytest.raises(UserError, match=r"No space left on device\)\nWhat was complete"):
            ask(reader, job(problems), root)
    assert [path.name for path in root.glob("*/*/*")] == ["evaluation.json"]
    _, watching = ask(reader, job(problems), root)
    assert watching.new == [12]


def test_a_damaged_file_is_named(reader: Path, problems: Path, tmp_path: Path) -> None:
    root = tmp_path / "out"
    ask(reader, job(problems), root)
    (part,) = root.glob("*/*/*.parquet")
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(UserError, match=rf"{part.name}: is damaged; delete it and evaluate again"):
        ask(reader, job(problems), root)


def test_positions_limit_responses_one_by_one(problems: Path, tmp_path: Path) -> None:
    asked = job(problems, Settings(max_new_tokens=64))
    lengths = [len(prompt.text) for prompt in asked.prompts]
    assert lengths == sorted(lengths)  # a token per byte
    small = save_model(tmp_path / "small", 1, positions=lengths[8] + 10)
    result, _ = ask(small, asked, tmp_path / "1", batch_size=64)
    rooms = [min(64, max(0, lengths[8] + 10 - length)) for length in lengths]
    for answer, room in zip(result.answers, rooms, strict=True):
        assert answer.tokens == room or (answer.finished and answer.tokens < room)
        assert answer.too_long == (room == 0)
    singly, _ = ask(small, asked, tmp_path / "2", batch_size=1)
    assert singly.answers == result.answers


def test_problems_without_room_count_as_wrong(problems: Path, tmp_path: Path) -> None:
    asked = job(problems)
    lengths = [len(prompt.text) for prompt in asked.prompts]
    small = save_model(tmp_path / "small", 1, positions=lengths[9])
    result, watching = ask(small, asked, tmp_path / "out")
    assert any("3 problems leave no room" in note for note in watching.notes)
    assert [a.problem for a in result.answers if a.too_long] == ["sums/9", "sums/10", "sums/11"]
    assert isinstance(result.answers[9], Answer)
    assert (result.answers[9].outcome, result.answers[9].reward) == ("no_answer", 0.0)


def test_all_seven_benchmarks_are_put_to_an_agent(reader: Path, tmp_path: Path, data: Path) -> None:
    tasks, _ = chosen_tasks(["all"], [], [], data)
    jobs = [load_job(name, task, SHORT, 2) for name, task in tasks.items()]
    assert [asked.name for asked in jobs] == [
        *("math500", "math", "gsm8k", "aime25", "amc23", "minerva_math", "olympiadbench")
    ]
    results = evaluate(find_targets([str(reader)]), jobs, tmp_path, Watching())
    assert all(len(result.answers) == 2 for result in results)
    for result in results:
        for answer in result.answers:
            assert answer.outcome == "no_answer"
            assert answer.reward == 0.0
            assert r"\boxed{}" in answer.prompt

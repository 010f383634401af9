"""Conversations, several answers, metadata, compressed files, texts that are none."""

from __future__ import annotations

import bz2
import gzip
import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import parquet

from hacrl.config.tasks import Task
from hacrl.errors import UserError
from hacrl.records import Outcome, Prompt
from hacrl.tasks import load_task
from hacrl.tasks.fields import to_problem
from hacrl.tasks.files import file_rows
from hacrl.tasks.rows import Row
from hacrl.verify import make_verifiers

SYSTEM = {"role": "system", "content": "Be brief."}
TURNS = [
    {"role": "user", "content": "1+1?"},
    {"role": "assistant", "content": "2"},
    {"role": "user", "content": "And 2+2?"},
]


def load(folder: Path, *rows: dict[str, Any], **keys: Any) -> tuple[Prompt, ...]:
    """Keys of the source, and `instruction`, `system` and `verifier` of the task."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = {key: keys.pop(key) for key in ("instruction", "system", "verifier") if key in keys}
    source = {"type": "jsonl", "path": str(path)} | keys
    return load_task(
        "t", Task.model_validate({"source": source, "verifier": {"type": "exact"}} | task)
    )


def refusal(folder: Path, *rows: dict[str, Any], **keys: Any) -> str:
    with pytest.raises(UserError) as caught:
        load(folder, *rows, **keys)
    assert len(str(caught.value).splitlines()) <= 2
    assert "rows.jsonl, line 1: " in str(caught.value)
    return str(caught.value)


def test_a_conversation_is_put_as_it_is(tmp_path: Path) -> None:
    row = {"messages": [SYSTEM, *TURNS], "answer": "4"}
    (prompt,) = load(tmp_path, row, question="messages", instruction="{question} Think.")
    assert prompt.system == "Be brief."
    assert prompt.history == (("user", "1+1?"), ("assistant", "2"))
    assert prompt.text == "And 2+2? Think."
    assert prompt.metadata == {}


@pytest.mark.parametrize(
    ("turns", "history", "text"),
    [
        (TURNS[:1], (), "1+1?"),
        ([{"from": "human", "value": "a"}], (), "a"),
        (
            [{"from": "gpt", "value": "a"}, {"from": "human", "value": "b"}],
            (("assistant", "a"),),
            "b",
        ),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                }
            ],
            (),
            "ab",
        ),
        ([TURNS[0], SYSTEM, TURNS[2]], (("user", "1+1?"), ("system", "Be brief.")), "And 2+2?"),
    ],
)
def test_shapes_of_conversations(
    tmp_path: Path, turns: list[Any], history: tuple[Any, ...], text: str
) -> None:
    (prompt,) = load(tmp_path, {"question": turns, "answer": "4"})
    assert (prompt.system, prompt.history, prompt.text) == (None, history, text)


@pytest.mark.parametrize(
    ("value", "question", "part"),
    [
        (TURNS, "{q}", "{q} in source.question holds a list, which is no text; question: q takes"),
        ([SYSTEM, *TURNS], "{q}!", "question: q takes it as a conversation"),
        (TURNS[:2], "q", "ends with the turn of 'assistant'"),
        (TURNS[:2], "{q}", "such as q.0.content"),
        ([{"role": "user", "content": 3}], "q", "the turn 'q.0' must have a role and a content"),
        (
            [{"role": "user", "content": [{"type": "image", "url": "x"}]}],
            "q",
            "the turn 'q.0' must have a role and a content that is text",
        ),
        ({"text": ["a", "b"], "label": ["A", "B"]}, "{q}", "such as q.text.0"),
        ({"a": {"content": "x"}}, "{q}", "such as q.a.content"),
        ([["a"], ["b"]], "{q}", "such as q.0.0"),
        ([1, None], "{q}", "holds a list, which is no text"),
        ({"en": "x", "de": "y"}, "q", "it holds a mapping; give the path to a text, such as q.en"),
        (["a", "b"], "q", "it holds a list; give the path to a text, such as q.0"),
        (True, "q", "it holds the boolean true"),
        (None, "q", "it holds null"),
    ],
)
def test_what_is_no_text_is_refused_with_the_path(
    tmp_path: Path, value: Any, question: str, part: str
) -> None:
    assert part in refusal(tmp_path, {"q": value, "answer": 1}, question=question)


def test_two_system_messages_are_refused(tmp_path: Path) -> None:
    row = {"question": [SYSTEM, *TURNS], "answer": "4"}
    assert "drop the task's system" in refusal(tmp_path, row, system="Be long.")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "from", "value", "a"]), inner)
    ),
    max_leaves=8,
)


@example([{"from": "human", "value": "x", "role": "user"}], "1", "q", None)
@example([{"from": None, "value": None, "role": None}], None, "q", "all")
@given(
    JSON,
    JSON,
    st.sampled_from(["q", "{q}", "{q} {a}", "q.0.content"]),
    st.sampled_from(["all", "any", None]),
)
def test_any_row_becomes_a_problem_or_one_line(
    question: Any, answer: Any, template: str, answers: Any
) -> None:
    row = Row("x, row 1", {"q": question, "a": answer, "more": question})
    message = ""
    try:
        problem = to_problem(row, template, "a", answers=answers, metadata=None)
    except UserError as error:
        message = str(error)
    else:
        assert problem.question.strip()
        assert all(isinstance(gold, str) for gold in (problem.gold, *problem.alternatives))
    assert not message or "row 1" in message
    assert len(message.splitlines()) <= 2


def test_several_answers_mean_what_the_task_says(tmp_path: Path) -> None:
    row = {"question": "?", "answer": ["3 hours", "180 minutes", "3 hours"]}
    message = refusal(tmp_path, row)
    assert "holds 3 answers" in message
    assert "source.answers to any" in message
    (parts,) = load(tmp_path, row, answers="all")
    assert (parts.gold, parts.alternatives) == ("3 hours, 180 minutes, 3 hours", ())
    (any_of,) = load(tmp_path, row, answers="any")
    assert (any_of.gold, any_of.alternatives) == ("3 hours", ("180 minutes",))
    for answers in ("all", "any", None):
        (one,) = load(tmp_path, {"question": "?", "answer": [3.0]}, answers=answers)
        assert (one.gold, one.alternatives) == ("3", ())
    row["answer"] = ["x", True]
    assert "it holds the boolean true; write it as a text" in refusal(tmp_path, row, answers="any")


@pytest.mark.parametrize(
    ("verifier", "golds", "right", "wrong"),
    [
        ({"type": "math"}, ["1/2", "7"], [r"\boxed{0.5}", r"\boxed{7}"], [r"\boxed{1/2, 7}"]),
        ({"type": "math"}, ["x+1", r"\pi"], [r"\boxed{1+x}", r"\boxed{\pi}"], [r"\boxed{x}"]),
        ({"type": "exact"}, ["a", "b"], ["#### a", "#### b"], ["#### a, b", "#### c"]),
        ({"type": "choice"}, ["A", "C"], [r"\boxed{A}", r"\boxed{C}"], [r"\boxed{B}"]),
        (
            {"type": "sum", "parts": [{"verifier": {"type": "exact"}}]},
            ["a", "b"],
            ["#### b"],
            ["#### c"],
        ),
        (
            {"type": "code"},
            ["assert f() == 1", "assert f() == 2"],
            ["def f(): return 2"],
            ["def f(): return 3"],
        ),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_any_of_several_answers_is_right(
    tmp_path: Path, verifier: dict[str, Any], golds: list[str], right: list[str], wrong: list[str]
) -> None:
    keys = {"answers": "any", "verifier": verifier}
    (prompt,) = load(tmp_path, {"question": "?", "answer": golds}, **keys)
    source = {"type": "jsonl", "path": "x", "answers": "any"}
    task = Task.model_validate({"source": source, "verifier": verifier})
    judge = make_verifiers({"t": task})["t"]
    assert [judge(prompt, text).outcome for text in right] == [Outcome.RIGHT] * len(right)
    assert [judge(prompt, text).outcome for text in wrong] == [Outcome.WRONG] * len(wrong)
    if verifier["type"] != "code":
        assert judge(prompt, "nothing").outcome is Outcome.NO_ANSWER


def test_metadata_are_the_other_fields_or_those_listed(tmp_path: Path) -> None:
    extra = {"level": 3, "tags": ["a"]}
    row = {"prompt": [*TURNS], "reward": {"gold": "4"}, "extra": extra, "source": "s", "x.y": 1}
    where = {"question": "prompt", "answer": "reward.gold"}
    assert load(tmp_path, row, **where)[0].metadata == {"extra": extra, "source": "s", "x.y": 1}
    listed = load(tmp_path, row, metadata=["extra.level", "x.y"], **where)
    assert listed[0].metadata == {"extra.level": 3, "x.y": 1}
    assert load(tmp_path, row, metadata="extra", **where)[0].metadata == extra
    assert load(tmp_path, row, metadata=[], **where)[0].metadata == {}
    assert "no field 'level'" in refusal(tmp_path, row, metadata=["level"], **where)
    assert "metadata: [source]" in refusal(tmp_path, row, metadata="source", **where)


def test_metadata_are_values_that_json_has(tmp_path: Path) -> None:
    row = {
        "question": "?",
        "answer": "1",
        "day": date(2020, 1, 2),
        "price": Decimal("1.50"),
        "count": Decimal("3"),
        "image": b"\x89PNG",
        "nested": {"image": b"x"},
    }
    found = to_problem(Row("r", row), "question", "answer", metadata=None).metadata
    assert found == {"day": "2020-01-02", "price": 1.5, "count": 3}
    with pytest.raises(UserError, match="no field 'image' with texts or numbers"):
        to_problem(Row("r", row), "question", "answer", metadata=["image"])


ROWS = [{"question": "1+1?", "answer": "2"}, {"question": "é😀?", "answer": "4"}]
TEXTS = {
    "jsonl": "".join(json.dumps(row) + "\n" for row in ROWS),
    "json": json.dumps(ROWS),
    "csv": "question,answer\n1+1?,2\né😀?,4\n",
}
PACKERS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": lambda content: pa.compress(content, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("packed", PACKERS)
@pytest.mark.parametrize("kind", TEXTS)
def test_compressed_files_are_read(tmp_path: Path, kind: str, packed: str) -> None:
    content = PACKERS[packed](TEXTS[kind].encode())
    for name in (f"rows.{kind}.{packed}", f"rows.{kind}"):  # whatever it is called
        path = tmp_path / name
        path.write_bytes(content)
        source = {"type": kind, "path": str(path)}
        task = Task.model_validate({"source": source, "verifier": {"type": "exact"}})
        assert [(p.text, p.gold) for p in load_task("t", task)] == [("1+1?", "2"), ("é😀?", "4")]
        assert [dict(row.fields) for row in file_rows(path)] == ROWS


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (gzip.compress(b"x" * 1000, mtime=0)[:-12], "cannot be unpacked as gzip"),
        (b"\x1f\x8bnothing", "cannot be unpacked as gzip"),
        (b"PK\x03\x04\xff\xff", "is a ZIP archive"),
        (b"\xfd7zXZ\x00\xff", "is compressed with xz"),
        ("é".encode("utf-16"), "is UTF-16"),
        (b"\xff", "byte 0 is not UTF-8"),
        (gzip.compress(b"\xff", mtime=0), "byte 0 is not UTF-8"),
    ],
)
def test_what_cannot_be_unpacked_is_named(tmp_path: Path, content: bytes, part: str) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(UserError, match=part) as caught:
        list(file_rows(path))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("kind", ["jsonl", "json"])
@pytest.mark.parametrize(
    "row",
    [
        {"question": "a\ud83d", "answer": "1"},
        {"question": "a", "answer": "\ude00"},
        {"question": "a", "answer": "1", "more": {"deep": ["\ud83d\ud83d"]}},
        {"question": "a", "answer": "1", "k\udfff": 1},
    ],
)
def test_half_a_character_is_refused_by_row(tmp_path: Path, kind: str, row: dict[str, Any]) -> None:
    path = tmp_path / f"rows.{kind}"
    rows = [ROWS[1], row]
    path.write_text(json.dumps(rows) if kind == "json" else "\n".join(map(json.dumps, rows)))
    source = {"type": kind, "path": str(path)}
    task = Task.model_validate({"source": source, "verifier": {"type": "exact"}})
    with pytest.raises(UserError, match=r"(row|line) 2: .*half of a character"):
        load_task("t", task)


def test_a_parquet_text_that_is_none_is_refused(tmp_path: Path) -> None:
    raw = pa.array([b"fine", b"\xed\xa0\xbd"]).cast(pa.binary())
    text = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"question": text, "answer": text}), path)
    with pytest.raises(UserError, match="not a readable Parquet file"):
        list(file_rows(path))


def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    for name in ("x" * 5000, "a/" * 5000):
        with pytest.raises(UserError):
            list(file_rows(Path(f"{name}.jsonl")))

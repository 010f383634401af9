"""Every source with its shapes and its mistakes."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pytest
from pyarrow import parquet

from hacrl.config import recipe_from_dict
from hacrl.config.tasks import Task
from hacrl.errors import UserError
from hacrl.tasks import load_task

ROWS = [{"question": "1+1?", "answer": "2"}, {"question": "2+2?", "answer": "4"}]


def task(**source: object) -> Task:
    return Task.model_validate({"source": source, "verifier": {"type": "exact"}})


def loaded(**source: object) -> list[tuple[str, str]]:
    return [(prompt.text, prompt.gold) for prompt in load_task("t", task(**source))]


def refused(**source: object) -> str:
    with pytest.raises(UserError) as caught:
        load_task("t", task(**source))
    message = str(caught.value)
    assert message.startswith("tasks.t: ")
    assert len(message.splitlines()) <= 2
    return message


def written(folder: Path, kind: str, content: Any) -> str:
    """A file with rows, or with exactly this text."""
    path = folder / f"rows.{kind}"
    match content:
        case bytes():
            path.write_bytes(content)
        case str():
            path.write_bytes(content.encode())
        case _ if kind == "parquet":
            parquet.write_table(pa.Table.from_pylist(content), path)
        case _ if kind == "json":
            path.write_text(json.dumps(content))
        case _ if kind == "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in content))
        case _:
            rows = [content[0].keys(), *(row.values() for row in content)]
            path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    return str(path)


FORMATS = ["jsonl", "json", "csv", "parquet"]


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_problems(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind, ROWS)
    assert loaded(type=kind, path=path) == [("1+1?", "2"), ("2+2?", "4")]
    assert loaded(type=kind, path=path, limit=1) == [("1+1?", "2")]
    assert loaded(type=kind, path=path, limit=9, question="answer", answer="question") == [
        ("2", "1+1?"),
        ("4", "2+2?"),
    ]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("csv", "question,answer\n1+1?,2\n2+2?,4"),
        ("csv", "question,answer\r\n1+1?,2\r\n2+2?,4\r\n"),
        ("csv", "\ufeffquestion,answer\n1+1?,2\n\n2+2?,4\n"),
        ("csv", '"question","answer"\n"1+1?","2"\n"2+2?",4\n'),
        ("json", "\ufeff" + json.dumps(ROWS)),
        ("json", json.dumps(ROWS, indent=1).replace("\n", "\r\n") + "\r\n"),
        ("jsonl", "\ufeff" + "\r\n".join(map(json.dumps, ROWS))),
    ],
)
def test_byte_order_marks_and_line_ends(tmp_path: Path, kind: str, text: str) -> None:
    assert loaded(type=kind, path=written(tmp_path, kind, text)) == [("1+1?", "2"), ("2+2?", "4")]


def test_a_csv_cell_may_hold_anything(tmp_path: Path) -> None:
    text = f'question,answer\n"a, ""b""\r\nc\u2028d","007"\n{"x" * 200_000},8\n'
    found = loaded(type="csv", path=written(tmp_path, "csv", text))
    assert found == [('a, "b"\r\nc\u2028d', "007"), ("x" * 200_000, "8")]
    tabs = written(tmp_path, "csv", "question\tanswer\n1,5?\t2\n")
    assert loaded(type="csv", path=tabs, delimiter="\t") == [("1,5?", "2")]


def test_a_json_list_may_lie_below_a_key(tmp_path: Path) -> None:
    path = written(tmp_path, "json", {"data": {"train": ROWS}})
    assert len(loaded(type="json", path=path, key="data.train")) == 2


def test_parquet_keeps_types(tmp_path: Path) -> None:
    rows = [
        {"question": "?", "answer": Decimal("27.00"), "list": ["1", "2"], "meta": {"gold": 3.0}},
    ]
    path = written(tmp_path, "parquet", rows)
    assert loaded(type="parquet", path=path) == [("?", "27")]
    assert loaded(type="parquet", path=path, answer="list", answers="all") == [("?", "1, 2")]
    assert loaded(type="parquet", path=path, answer="meta.gold") == [("?", "3")]


MISTAKES: dict[str, tuple[str, Any, Mapping[str, object], str]] = {
    "json malformed": ("json", "[{]", {}, "rows.json: not valid JSON: Expecting"),
    "json deep": ("json", "[" * 100_000, {}, "rows.json: not valid JSON"),
    "json not utf-8": ("json", b'["\xff"]', {}, "rows.json: byte 2 is not UTF-8"),
    "json empty": ("json", "", {}, "the source has no problems"),
    "json no rows": ("json", "[]", {}, "the source has no problems"),
    "json no list": (
        *("json", '{"rows": []}', {}),
        "expected a list of objects, found dict; its keys are: rows; set the task's source.key",
    ),
    "json no key": ("json", '{"a": []}', {"key": "rows"}, "has no key 'rows'; its keys are: a"),
    "json key no list": ("json", '{"a": 3}', {"key": "a"}, "expected a list of objects, found int"),
    "json row": ("json", [ROWS[0], 3], {}, "rows.json, row 2: expected an object, found int"),
    "json field": ("json", [{"q": 1}], {}, "row 1: no field 'question'; the fields are: q"),
    "csv empty": ("csv", "", {}, "the source has no problems"),
    "csv header alone": ("csv", "question,answer\n", {}, "the source has no problems"),
    "csv field": ("csv", "q,answer\n1,2\n", {}, "line 2: no field 'question'; the fields are: q,"),
    "csv short row": (
        *("csv", "question,answer\n1,2\n3\n", {}),
        "rows.csv, line 3: has 1 cells where the header has 2",
    ),
    "csv long row": (
        *("csv", 'question,answer\n"1\n",2\n3,4,5\n', {}),
        "rows.csv, line 4: has 3 cells where the header has 2",
    ),
    "csv twice": ("csv", "a,a\n1,2\n", {}, "line 1: the header names a field twice: a, a"),
    "csv open quote": ("csv", 'question,answer\n1,2\n"3,4\n', {}, "line 3: not valid CSV"),
    "csv blank answer": ("csv", "question,answer\n1, \n", {}, "line 2: the field 'answer' must"),
    "csv blank question": (
        "csv",
        "question,answer\n ,1\n",
        {},
        "line 2: the field 'question' must",
    ),
    "csv not utf-8": ("csv", b"question\xff", {}, "rows.csv: byte 8 is not UTF-8"),
    "parquet malformed": ("parquet", "abc", {}, "rows.parquet: not a readable Parquet file"),
    "parquet field": (
        *("parquet", [{"q": "?"}], {}),
        "rows.parquet, row 1: no field 'question'; the fields are: q\nSet the task's source",
    ),
    "parquet null": (
        *("parquet", [ROWS[0], {"question": "?", "answer": None}], {}),
        "row 2: the field 'answer' must hold a text, a number, or a list",
    ),
    "wrong type": ("jsonl", [{"question": 3, "answer": 4}], {}, "line 1: the field 'question'"),
    "template field": (
        *("jsonl", ROWS, {"question": "{question} {hint}"}),
        "line 1: no field 'hint'; the fields are: question, answer",
    ),
    "template empty": (
        *("jsonl", [{"question": None, "answer": 4}], {"question": "{question}"}),
        "line 1: the field '{question}' must hold",
    ),
    "path leads nowhere": (
        *("jsonl", [{"question": "?", "answer": {"x": []}}], {"answer": "answer.x.0"}),
        "line 1: no field 'answer.x.0'",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(tmp_path: Path, name: str) -> None:
    kind, content, source, message = MISTAKES[name]
    assert message in refused(type=kind, path=written(tmp_path, kind, content), **source)


@pytest.mark.parametrize("kind", FORMATS)
def test_missing_files_and_folders(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "none"
    assert f"{path}: there is no such file" in refused(type=kind, path=str(path))
    assert f"{tmp_path}: cannot be read: is a folder" in refused(type=kind, path=str(tmp_path))


@pytest.mark.parametrize(
    ("row", "template", "text"),
    [
        ({"a": "x", "b": "y"}, "{a}\n\n{b}!", "x\n\ny!"),
        ({"a": "x", "b": None}, "{a}{b}", "x"),
        ({"a": 3.0, "b": True}, "{a} {b}", "3 True"),
        ({"a": r"\frac{1}{2}", "b": "{a}"}, "{a} {b}", r"\frac{1}{2} {a}"),
        ({"a": "?", "choices": ["red", "blue"]}, "{a}\n{choices}", "?\nA. red\nB. blue"),
        ({"a": "?", "choices": {"C": "red", "D": 2}}, "{a}\n{choices}", "?\nC. red\nD. 2"),
        ({"a": "?", "deep": {"b": ["p", "q"]}}, "{deep.b.1}", "q"),
        ({"a": "?", "x.y": "dot"}, "x.y", "dot"),
        ({"prompt": [{"content": "hello", "role": "user"}]}, "prompt.0.content", "hello"),
    ],
)
def test_templates_and_nested_fields(
    tmp_path: Path, row: dict[str, object], template: str, text: str
) -> None:
    path = written(tmp_path, "jsonl", [row | {"answer": 1}])
    assert loaded(type="jsonl", path=path, question=template) == [(text, "1")]


def test_a_hub_data_set_is_loaded_by_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load(*args: object, **kwargs: object) -> datasets.Dataset:
        asked.append((args, kwargs))
        return datasets.Dataset.from_list(ROWS)

    monkeypatch.setattr(datasets, "load_dataset", load)
    found = loaded(type="hub", id="a/b", config="main", split="test", revision="v1", limit=1)
    assert found == [("1+1?", "2")]
    assert asked == [(("a/b", "main"), {"split": "test", "revision": "v1"})]
    assert "data set a/b, train row 1: no field 'x'; the fields are: question" in refused(
        type="hub", id="a/b", question="x"
    )


def test_an_unreachable_hub_names_the_data_set_and_the_local_way() -> None:
    message = refused(type="hub", id="somebody/some-data", config="main", split="test")
    assert "data set somebody/some-data, configuration main, split test: cannot be" in message
    assert "use a local file: set source.type to jsonl, json, csv or parquet" in message
    assert "set the task's source.path, or pass --data" in refused(type="benchmark", name="aime25")


def test_a_missing_library_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert "pip install datasets" in refused(type="hub", id="a/b")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            {"type": "benchmark", "name": "gsm8"},
            "there is no benchmark 'gsm8'; did you mean gsm8k",
        ),
        ({"type": "benchmark", "name": "Math-500"}, "did you mean math500?"),
        ({"type": "benchmark", "name": "xyz"}, "'xyz'; the benchmarks are math500, math, gsm8k"),
        ({"type": "hub", "id": "a/b", "splt": "test"}, "did you mean split?"),
        ({"type": "reasoning_gym"}, "give either name, for one generator, or generators"),
        (
            {"type": "reasoning_gym", "generators": {"gcd": {}}, "config": {"a": 1}},
            "config and difficulty of a mixture belong below each generator",
        ),
        ({"type": "csv", "path": "x", "delimiter": ";;"}, "delimiter: string should have at most"),
        ({"type": "csv", "path": "x", "limit": 0}, "limit: input should be greater than or"),
    ],
)
def test_recipes_with_a_wrong_source(source: dict[str, object], message: str) -> None:
    raw = {
        "name": "r",
        "steps": 1,
        "prompts_per_step": 1,
        "agents": {"a": {"model": "m"}},
        "tasks": {"t": {"source": source, "verifier": {"type": "exact"}}},
    }
    with pytest.raises(UserError) as caught:
        recipe_from_dict(raw)
    assert message in str(caught.value)
    assert "tasks.t.source" in str(caught.value)

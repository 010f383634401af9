import re
from pathlib import Path

import pytest

from hacrl.config.sources import JsonlSource
from hacrl.config.tasks import Task
from hacrl.config.verifiers import MathVerifier
from hacrl.errors import UserError
from hacrl.records import Prompt
from hacrl.tasks import load_task

ROW = '{"question": "1+1?", "answer": "2"}'


def task(path: Path, question: str = "question", answer: str = "answer", **more: object) -> Task:
    source = JsonlSource(path=str(path), question=question, answer=answer)
    return Task(source=source, verifier=MathVerifier(), **more)


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "rows.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_prompt_holds_instruction_system_and_raw_gold(tmp_path: Path) -> None:
    path = written(tmp_path, r'{"question": "$\\frac{1}{2}$?", "answer": "It is half.\n#### 0.5"}')
    made = task(path, instruction=r"{question} Use \boxed{}.", system="Be brief.")
    assert load_task("task", made) == (
        Prompt(
            "task/0", "task", r"$\frac{1}{2}$? Use \boxed{}.", "It is half.\n#### 0.5", "Be brief."
        ),
    )


@pytest.mark.parametrize(
    "content",
    [
        f"{ROW}\n{ROW}\n",
        f"{ROW}\n{ROW}",  # no last line end
        f"\n{ROW}\n\n  \n{ROW}\n\n",
        f"{ROW}\r\n{ROW}\r\n",
        f"\ufeff{ROW}\n{ROW}\n",
    ],
)
def test_line_ends(tmp_path: Path, content: str) -> None:
    prompts = load_task("task", task(written(tmp_path, content)))
    assert [(p.id, p.text, p.gold) for p in prompts] == [
        ("task/0", "1+1?", "2"),
        ("task/1", "1+1?", "2"),
    ]


def test_other_line_separators_are_text(tmp_path: Path) -> None:
    path = written(tmp_path, '{"question": "a\u2028b\u0085c", "answer": "2"}\n')
    assert load_task("task", task(path))[0].text == "a\u2028b\u0085c"


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("27", "27"), ("27.0", "27"), ("0.25", "0.25"), ("-3.0", "-3"), ('"x"', "x"),
        ('["x"]', "x"), ('["1", "2"]', "1, 2"), ("[1, 2.0]", "1, 2"), ("1e3", "1000"),
    ],
)  # fmt: skip
def test_answers(tmp_path: Path, answer: str, gold: str) -> None:
    path = written(tmp_path, f'{{"question": "?", "answer": {answer}}}')
    made = Task.model_validate(
        {
            "source": {"type": "jsonl", "path": str(path), "answers": "all"},
            "verifier": {"type": "exact"},
        }
    )
    assert load_task("task", made)[0].gold == gold


@pytest.mark.parametrize(
    "answer",
    ["null", "true", '""', '" "', "[]", "[[1]]", "[null]", '{"a": 1}', "NaN", "Infinity", "1e999"],
)
def test_unusable_answers(tmp_path: Path, answer: str) -> None:
    path = written(tmp_path, f'{ROW}\n{{"question": "?", "answer": {answer}}}')
    with pytest.raises(UserError, match=r"rows\.jsonl, line 2: the field 'answer' must hold"):
        load_task("task", task(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "tasks.task: the source has no problems"),
        ("\n \n", "tasks.task: the source has no problems"),
        (f"{ROW}\n\n{{'a': 1}}", r"rows\.jsonl, line 3: not valid JSON: Expecting"),
        (f"{ROW}\n[1]", r"rows\.jsonl, line 2: expected a JSON object, found list"),
        ("[" * 100_000, r"rows\.jsonl, line 1: not valid JSON"),
        (b'{"question": "\xff"}', r"rows\.jsonl: byte 14 is not UTF-8"),
        ('{"question": 3, "answer": "2"}', r"line 1: the field 'question' must hold the problem"),
        (
            f'{ROW}\n{{"question": "?", "final": "2"}}',
            r"line 2: no field 'answer'; the fields are: question, final\nSet the task's source",
        ),
        (
            '{"problem": "?", "answer": "2"}',
            r"line 1: no field 'question'; the fields are: problem, answer\nSet the task's source",
        ),
    ],
)
def test_mistakes(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        load_task("task", task(written(tmp_path, content)))
    assert len(str(caught.value).splitlines()) <= 2


def test_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    with pytest.raises(UserError, match=re.escape(f"{path}: there is no such file")):
        load_task("task", task(path))
    with pytest.raises(UserError, match="cannot be read"):
        load_task("task", task(tmp_path))


@pytest.mark.parametrize(
    ("file", "question", "answer", "rows", "first", "gold_end"),
    [
        ("gsm8k/train.jsonl", "question", "answer", 7473, "Natalia sold", "#### 72"),
        ("gsm8k/test.jsonl", "question", "answer", 1319, "Janet", "#### 18"),
        ("math/test.jsonl", "problem", "solution", 5000, "How many vertical", "asymptotes."),
        ("math500/test.jsonl", "problem", "answer", 500, "Convert the", r"\right)"),
        ("aime25/test.jsonl", "question", "answer", 30, "Six points", "468"),
        ("amc23/test.jsonl", "problem", "answer", 40, "Cities", "27"),
        ("minerva_math/test.jsonl", "problem", "solution", 272, "Each of the", r"\]"),
        ("olympiadbench/test.jsonl", "question", "final_answer", 675, "Xenia and", "2"),
    ],
)
def test_public_files(
    data: Path, file: str, question: str, answer: str, rows: int, first: str, gold_end: str
) -> None:
    prompts = load_task("task", task(data / file, question, answer))
    assert len(prompts) == rows
    assert len({prompt.id for prompt in prompts}) == rows
    assert prompts[0].text.startswith(first)
    assert prompts[0].gold.endswith(gold_end)

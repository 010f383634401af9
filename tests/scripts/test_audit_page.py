"""The page of what `math` gets wrong is written by a command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.audit_page import BEGIN, END, PAGE, main, replaced


def test_only_the_tables_are_replaced() -> None:
    assert replaced(f"a\n{BEGIN}old{END}b\n", "new") == f"a\n{BEGIN}\nnew\n{END}b\n"


def test_the_page_of_the_manual_has_its_tables() -> None:
    text = PAGE.read_text("utf-8")
    made = text.partition(BEGIN)[2].partition(END)[0]
    titles = ("By benchmark", "False negatives by kind", "False positives by kind", "last digit")
    for title in titles:
        assert title in made
    assert replaced(text, made.strip("\n")) == text


def test_tables_are_made_from_reference_answers(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # a worker for each would have to start
    rows = [{"problem": "?", "answer": gold} for gold in ("72", r"\frac{1}{2}", "about 3 hours")]
    (tmp_path / "amc23").mkdir()
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "amc23" / "test.jsonl").write_text(text)
    page = tmp_path / "page.md"
    pages = []
    for _ in range(2):
        page.write_text(f"before\n{BEGIN}{END}after\n")
        main(["--data", str(tmp_path), "--bench", "amc23", "--page", str(page)])
        pages.append(page.read_text())
    assert pages[0] == pages[1]
    assert pages[0].startswith(f"before\n{BEGIN}")
    assert pages[0].endswith(f"{END}after\n")
    assert "| `amc23` | 3 | " in pages[0]
    assert "| all | 2 | " in pages[0], "the last digits of the half and of the hours"
    assert "amc23 reference answers: 3 of 3" in capfd.readouterr().err

"""The manual builds without a broken link, and holds every page."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def test_the_manual_builds_strictly(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    result = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    page = (tmp_path / "index.html").read_text("utf-8")
    assert "fonts.googleapis" not in page, "the pages fetch nothing from elsewhere"


def test_every_page_is_in_the_navigation() -> None:
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    listed = {page for group in navigation for page in _pages(group)}
    docs = ROOT / "docs"
    assert listed == {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")}


@pytest.mark.parametrize("page", ["README.md", "docs/how.md"])
def test_the_loop_that_is_shown_is_the_one_that_runs(page: str) -> None:
    (shown,) = re.findall(
        r"```python\n(for step in .*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL
    )
    code = (ROOT / "src" / "hacrl" / "training" / "loop.py").read_text("utf-8")
    assert textwrap.indent(shown, "    ") in code


def _pages(entry: object) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    return [page for part in parts for page in _pages(part)]  # type: ignore[attr-defined]

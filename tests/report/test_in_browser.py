"""The page in headless Chromium: scripts work, nothing is refused, nothing overflows."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from hacrl.report.writing import write_report
from tests.report.conftest import CopyRun

pytestmark = pytest.mark.slow

HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="session")
def chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell"):
        if path := shutil.which(name):
            return path
    pytest.skip("needs Chromium (apt-get install chromium) to look at the report")


@pytest.fixture
def page(copy_run: CopyRun) -> Path:
    """The report of a run in which every answer is hostile."""
    folder = copy_run()
    for path in (folder / "rollouts").iterdir():
        table = pq.read_table(path)
        at = table.schema.get_field_index("text")
        pq.write_table(table.set_column(at, "text", pa.array([HOSTILE] * table.num_rows)), path)
    return write_report([folder])[1]


def browse(chromium: str, page: Path, *options: str) -> tuple[str, str]:
    """Standard output, and the messages of the page's console."""
    done = subprocess.run(
        [
            *(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--enable-logging=stderr", f"--user-data-dir={page.parent / 'profile'}"),
            *("--virtual-time-budget=3000", *options, page.as_uri()),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    console = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return done.stdout, console


def test_rollouts_are_shown_and_what_models_write_is_text(chromium: str, page: Path) -> None:
    dom, console = browse(chromium, page, "--dump-dom")
    assert console == ""
    assert "<title>pair · hacrl report</title>" in dom
    cards = re.findall(r'<article class="answer.*?</article>', dom, re.DOTALL)
    assert len(cards) == 2 * 4
    assert "&lt;/script&gt;&lt;script&gt;document.title" in cards[0]
    assert "<img" not in dom
    fates = r">(taught|left out: |nothing to learn, the advantage is 0|no gradient, )"
    assert all(len(re.findall(fates, card)) == 2 for card in cards), "one for each learner"


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scripts", [True, False])
def test_nothing_reaches_beyond_the_right_edge(
    chromium: str, page: Path, tmp_path: Path, width: int, scripts: bool
) -> None:
    # In a frame: Chromium makes windows of less than 500 pixels only some of the time.
    picture, frame = tmp_path / "page.png", page.with_name("frame.html")
    sandbox = 'sandbox="allow-scripts"' if scripts else "sandbox"
    style = f"border: 0; width: {width}px; height: 20000px"
    frame.write_text(
        f'<body style="margin: 0"><iframe {sandbox} src="{page.name}" style="{style}"></iframe>'
    )
    _, console = browse(chromium, frame, "--window-size=1280,20000", f"--screenshot={picture}")
    assert console == "" if scripts else "Blocked script execution" in console
    with Image.open(picture) as image:
        pixels = np.asarray(image.convert("L"))[:, :width]
    assert pixels.shape == (20000, width)
    assert pixels[:3000].std() > 10, "there is something to see"
    assert (pixels[:, -6:] == pixels[0, -1]).all()


def test_it_can_be_printed(chromium: str, page: Path, tmp_path: Path) -> None:
    paper = tmp_path / "page.pdf"
    browse(chromium, page, f"--print-to-pdf={paper}")
    assert paper.read_bytes().startswith(b"%PDF")
    assert paper.stat().st_size > 50_000

"""The page: complete, self-contained, the same every time, and safe whatever models write."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hacrl.report.page import make_report, render
from hacrl.report.reading import read_runs
from hacrl.report.teaching import flows, matrices
from tests.report.conftest import CopyRun, MakeRun, change_metrics

ALL = [
    *("learning", "held-out", "cost"),
    *("matrix", "flows", "clipping", "bounds", "alignment", "signal", "outcomes", "time"),
]
VOID = {"meta", "link", "br", "img", "input"}
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&amp;\u2028$x$\x00"


class Page(HTMLParser):
    """What a browser would make of the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data

    def attributes(self, name: str) -> Iterator[str]:
        return (value for _, attrs in self.tags if (value := attrs.get(name)) is not None)


def page_of(*folders: Path, browse: int = 100) -> str:
    return render(make_report(read_runs(folders), browse))


@pytest.fixture(scope="module")
def whole_page(whole_run: Path) -> str:
    """The page of an undamaged run."""
    return page_of(whole_run)


def charts_in(text: str) -> list[str]:
    return re.findall(r'<section class="chart" id="(?:run-\d+-)?([\w-]+)">', text)


def test_every_figure_is_there_and_ids_are_unique(whole_page: str) -> None:
    text = whole_page
    assert charts_in(text) == ALL
    page = Page(text)
    ids = list(page.attributes("id"))
    assert len(ids) == len(set(ids))
    for reference in re.findall(r"url\(#([^)]+)\)|xlink:href=\"#([^\"]+)\"", text):
        assert "".join(reference) in ids
    figures = [attrs for tag, attrs in page.tags if tag == "figure"]
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in figures)
    assert text.count("<dt>method</dt><dd>hacpo</dd>") == 1
    assert len(figures) == len([tag for tag, _ in page.tags if tag == "svg"])


def test_nothing_is_fetched_and_only_our_script_may_run(whole_page: str) -> None:
    page = Page(whole_page)
    assert not list(page.attributes("src"))
    assert all(value.startswith("#") for value in page.attributes("xlink:href"))
    assert {tag for tag, _ in page.tags} & {"link", "iframe", "object", "image", "img"} == set()
    (policy,) = (
        attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") is not None
    )
    assert policy is not None
    digest = base64.b64encode(hashlib.sha256(page.scripts[-1].encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy
    assert "innerHTML" not in page.scripts[-1]


def test_a_report_is_the_same_every_time(whole_page: str, whole_run: Path) -> None:
    assert page_of(whole_run) == whole_page


@pytest.mark.usefixtures("sketches")
def test_what_models_write_stays_text(copy_run: CopyRun) -> None:
    folder = copy_run()
    path = folder / "rollouts" / "step-000000.parquet"
    table = pq.read_table(path)
    for column in ("text", "prompt_text", "gold", "answer", "prompt_id"):
        at = table.schema.get_field_index(column)
        table = table.set_column(at, column, pa.array([HOSTILE] * table.num_rows))
    pq.write_table(table, path)
    page = Page(page_of(folder))
    assert len(page.scripts) == 2, "the data and ours"
    data = json.loads(page.scripts[0])
    assert data[0]["prompts"][0]["answers"][0]["text"] == HOSTILE
    assert data[0]["prompts"][0]["gold"] == HOSTILE
    assert not list(page.attributes("onerror"))


@pytest.mark.usefixtures("only_comparisons")
def test_names_and_recipes_stay_text(copy_run: CopyRun) -> None:
    hostile = "<b>$x$ & {{ 1 }}"
    text = page_of(copy_run(hostile, name="'</pre><script>x</script>'"), copy_run("other"))
    page = Page(text)
    assert len(page.scripts) == 3
    assert "b" not in {tag for tag, _ in page.tags}
    assert html.escape(hostile) in text


@pytest.mark.usefixtures("only_comparisons")
def test_several_runs_are_compared_and_seeds_grouped(copy_run: CopyRun) -> None:
    folders = [copy_run(f"a-s{seed}", seed=seed) for seed in (0, 1)]
    text = page_of(*folders, copy_run("b", steps=9))
    assert "a (2 seeds) · b" in text
    assert "This run represents all of a (2 seeds)" in text
    assert charts_in(text) == [*ALL, *ALL[3:]]
    assert "4/9" in text
    svgs = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert "a (2 seeds)" in svgs[0]


@pytest.mark.usefixtures("sketches")
def test_the_glance_shows_where_agents_began_and_are(copy_run: CopyRun) -> None:
    folder = copy_run()
    change_metrics(folder, lambda row: row | {"reward": 0.125 * (row["step"] + 1)})
    text = page_of(folder)
    assert text.count("0.125 → 0.500") == 2
    assert 'data-label="own rollouts" class="n">64<' in text


@pytest.mark.usefixtures("sketches")
def test_advice_is_repeated_with_its_step(copy_run: CopyRun) -> None:
    folder = copy_run()
    change_metrics(
        folder,
        lambda row: row | {"truncated": 0.9 if (row["agent"], row["step"]) == ("lee", 2) else 0.0},
    )
    assert re.search(
        r"step 3</span> lee: 90% of responses hit sampling\.max_new_tokens", page_of(folder)
    )


def gap(row: dict[str, Any]) -> dict[str, Any]:
    """A step that measured nothing at all."""
    nothing = {"inside": None, "below": None, "above": None, "ratio_mean": None, "teaching": 0.0}
    return row | {
        "reward": None,
        "capability": None,
        "outcomes": {},
        "scored": 0,
        "own": row["own"] | nothing,
        "sources": {name: shares | nothing for name, shares in row["sources"].items()},
        **({"alignment": {"x": None}, "alignment_of_peers": None} if "alignment" in row else {}),
    }


@pytest.mark.usefixtures("unarranged")
def test_gaps_everywhere_and_in_places(copy_run: CopyRun) -> None:
    for name, where in (("all", range(4)), ("some", (0, 2))):
        folder = copy_run(name)
        change_metrics(folder, lambda row, where=where: gap(row) if row["step"] in where else row)
        Page(page_of(folder, browse=1))


@pytest.mark.usefixtures("unarranged")
@pytest.mark.parametrize("steps", [0, 1])
def test_runs_that_have_hardly_begun(copy_run: CopyRun, steps: int) -> None:
    folder = copy_run()
    change_metrics(folder, lambda row: row if row["step"] < steps else None)
    for kind in ("rollouts", "lessons"):
        for path in sorted((folder / kind).iterdir())[steps:]:
            path.unlink()
    (folder / "evaluations.jsonl").unlink()
    (folder / "state.json").write_text('{"state": "running"}')
    text = page_of(folder)
    Page(text)
    assert "running" in text
    if steps:
        assert charts_in(text) == [name for name in ALL if name != "held-out"]
    else:
        assert charts_in(text) == []
        assert "No step has been completed yet." in text


@pytest.mark.usefixtures("unarranged")
def test_an_interrupted_step_of_one_agent_alone(copy_run: CopyRun) -> None:
    folder = copy_run()
    change_metrics(folder, lambda row: None if (row["step"], row["agent"]) == (3, "lee") else row)
    Page(page_of(folder))


@pytest.mark.usefixtures("unarranged")
def test_an_agent_alone_has_no_teachers(make_run: MakeRun, tiny_recipe: Any) -> None:
    agents = {"kim": tiny_recipe()["agents"]["kim"]}
    for name, method in (("solo", "gspo"), ("tokens", "grpo")):
        folder = make_run(name, agents=agents, steps=2, method=method)
        text = page_of(folder)
        Page(text)
        assert charts_in(text) == [
            *("learning", "cost", "clipping", "bounds", "signal", "outcomes", "time")
        ]


@pytest.mark.usefixtures("unarranged")
def test_one_way_teaching_and_three_agents(make_run: MakeRun, tiny_recipe: Any) -> None:
    agents = tiny_recipe()["agents"]
    agents["may"] = agents["kim"]
    folder = make_run(
        "three", agents=agents, steps=1, prompts_per_step=4, sharing={"kim": ["lee", "may"]}
    )
    text = page_of(folder)
    Page(text)
    assert "matrix" in charts_in(text)
    assert "kim ← may" in text
    assert "lee ← kim" not in text


def test_many_agents_get_colours_with_a_scale_instead_of_numbers(copy_run: CopyRun) -> None:
    run = read_runs([copy_run()])[0]
    names = [f"agent-number-{i}" for i in range(9)]
    source = run.rows[0]["sources"]["lee"]
    rows = tuple(
        run.rows[0]
        | {
            "agent": name,
            "omega": {other: 1.1 for other in names if other != name},
            "sources": {other: source for other in names if other != name},
        }
        for name in names
    )
    chart = matrices(dataclasses.replace(run, agents=tuple(names), rows=rows))
    assert chart is not None
    (omega, *_) = chart.svgs()
    assert "agent-nu…" in omega[1]
    assert omega[1].count("QuadMesh_") == 2, "the matrix and the scale"
    assert "<image" not in omega[1]
    assert flows(dataclasses.replace(run, agents=tuple(names), rows=rows)) is None

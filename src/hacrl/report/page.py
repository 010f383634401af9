"""The page: charts, tables and rollouts as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import yaml
from jinja2 import Environment
from markupsafe import Markup

from hacrl.report import health, teaching
from hacrl.report import learning as comparing
from hacrl.report.browser import Sample, sample_rollouts
from hacrl.report.drawing import Chart
from hacrl.report.facts import run_facts, summary, task_lines
from hacrl.report.reading import RunData
from hacrl.report.series import Group, group_runs
from hacrl.training.advice import Advisor

__all__ = ["Detail", "Report", "make_report", "render"]


@dataclass(frozen=True)
class Detail:
    """The details of one run.

    Args:
        run: it.
        stands_for: label of the group of seeds that it stands for, None for itself alone.
        charts: that could be drawn.
        advice: step and sentence.
        sample: rollouts to browse.
    """

    run: RunData
    stands_for: str | None
    charts: Sequence[Chart]
    advice: Sequence[tuple[int, str]]
    sample: Sample


@dataclass(frozen=True)
class Report:
    """A report before it is rendered.

    Args:
        groups: runs that differ by seed are one.
        charts: that compare the groups.
        details: of the first run of each group.
    """

    groups: Sequence[Group]
    charts: Sequence[Chart]
    details: Sequence[Detail]

    @property
    def runs(self) -> list[RunData]:
        """All runs, by group."""
        return [run for group in self.groups for run in group.runs]


def make_report(runs: Sequence[RunData], browse: int) -> Report:
    """Group the runs and make all charts that they give.

    Args:
        browse: prompts of each run to browse.
    """
    groups = group_runs(runs)
    made = (comparing.learning(groups), comparing.held_out(groups), comparing.cost(groups))
    return Report(
        groups,
        [chart for chart in made if chart is not None],
        [_detail(group, browse) for group in groups],
    )


def render(report: Report) -> str:
    """The report as HTML."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    script = _asset("browser.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    names = [group.label for group in report.groups]
    return environment.from_string(_asset("page.html.jinja")).render(
        title=" · ".join(names) if len(names) <= 4 else f"{len(names)} runs",
        report=report,
        style=Markup(_asset("page.css")),
        script=Markup(script),
        digest=digest,
        summary=summary(report.groups),
        facts=run_facts,
        tasks=task_lines,
        recipe=lambda run: yaml.safe_dump(dict(run.recipe), sort_keys=False, allow_unicode=True),
        svgs=lambda chart: [(title, Markup(svg)) for title, svg in chart.svgs()],
        embedded=_embedded,
    )


def _detail(group: Group, browse: int) -> Detail:
    run = group.runs[0]
    sample = sample_rollouts(run, browse)
    made = (
        teaching.matrices(run),
        teaching.flows(run),
        teaching.clipping(run),
        teaching.bounds(run, sample.lessons),
        teaching.alignment(run),
        health.signal(run),
        health.outcomes(run),
        health.time(run),
    )
    return Detail(
        run,
        group.label if len(group.runs) > 1 else None,
        [chart for chart in made if chart is not None],
        _advice(run),
        sample,
    )


def _advice(run: RunData) -> list[tuple[int, str]]:
    advisor = Advisor()
    by_step: dict[int, list[Mapping[str, Any]]] = {}
    for row in run.rows:
        by_step.setdefault(row["step"], []).append(row)
    return [(step + 1, text) for step, rows in by_step.items() for text in advisor.advise(rows)]


def _embedded(value: object) -> Markup:
    """JSON that cannot end the element that it stands in, whatever models have written."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _asset(name: str) -> str:
    return files("hacrl.report").joinpath("assets", name).read_text("utf-8")

"""The model card of an exported agent: what it is, whom it learned from, how good it became."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from huggingface_hub import ModelCardData

from hacrl.config import AgentSpec, Recipe, recipe_to_yaml
from hacrl.config.recording import RecordingSpec
from hacrl.config.sources import HubSource, Source
from hacrl.paths import BUNDLED, resolve
from hacrl.runs.origin import origin
from hacrl.runs.writing import read_lines

__all__ = ["model_card"]

_CARD = """---
{{ head }}
---

# {{ agent }}

{% if peers -%}
A language model that learned {{ tasks }} by reinforcement learning with verifiable rewards, from
its own answers and from those of its peers ({{ method }},
[HACRL](https://arxiv.org/abs/2603.02604)). It does not need its peers to be used.
{%- else -%}
A language model that learned {{ tasks }} by reinforcement learning with verifiable rewards
({{ method }}).
{%- endif %}

| | |
|---|---|
| started from | {{ base }} |
{%- if adapter %}
| this folder | a LoRA adapter; load it on top of that model with PEFT |
{%- endif %}
| learned from | {{ peers or "itself alone" }} |
| problems | {{ problems }} |
| steps | {{ steps }}, of {{ recipe.prompts_per_step }} prompts × {{ recipe.group_size }} answers |
| reward of its own rollouts | {{ first }} in the first step, {{ last }} in the last |

{% if results -%}
## Held-out problems

| task | after step | metric | value | 95% interval |
|---|---|---|---|---|
{%- for row in results %}
| {{ row.task }} | {{ row.step }} | {{ row.metric }} | {{ "%.3f"|format(row.value) }} | {{
    "%.3f"|format(row.low) }} to {{ "%.3f"|format(row.high) }} |
{%- endfor %}
{%- endif %}

## Recipe

Trained with {{ versions }}.

```yaml
{{ yaml }}```
"""


def model_card(
    run: Path, recipe: Recipe, agent: str, learned: Sequence[int], *, adapter: bool
) -> str:
    """Markdown with the metadata that the Hub reads.

    Args:
        run: its folder; metrics and evaluations are read from there.
        learned: steps, from 0, that the exported weights have learned from.
        adapter: whether an adapter alone is exported.
    """
    spec = recipe.models[agent]
    rows = {
        row["step"]: row["reward"]
        for row in read_lines(run / "metrics.jsonl")
        if row["agent"] == agent
    }
    rewards = [rows[step] for step in learned]
    known = learned[-1] + 1 if learned else 0
    undone = rows.keys() - set(learned)  # since the agent was lost before it was saved
    evaluations = [
        row
        for row in read_lines(run / "evaluations.jsonl")
        if row["agent"] == agent
        and row["value"] is not None
        and row["step"] <= known
        and row["step"] - 1 not in undone
    ]
    last = {row["task"]: row for row in evaluations}  # in the order in which they were made
    first = {row["task"]: row for row in reversed(evaluations)}
    sources = {name: task.source for name, task in recipe.tasks.items()}
    head = ModelCardData(
        base_model=None if os.path.isdir(resolve(spec.model)) else spec.model,
        library_name="peft" if adapter else "transformers",
        pipeline_tag="text-generation",
        tags=["hacrl", recipe.method_name, "reinforcement-learning", "rlvr"],
        datasets=sorted({s.id for s in sources.values() if isinstance(s, HubSource)}) or None,
    )
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    return environment.from_string(_CARD).render(
        head=head.to_yaml(),
        agent=agent,
        adapter=adapter,
        method=recipe.method_name,
        tasks=", ".join(recipe.tasks),
        base=_called(spec.model),
        peers=", ".join(
            f"{peer} ({_origin(recipe.agents[peer])})" for peer in recipe.sources(agent)
        ),
        problems="; ".join(f"{name}: {_place(source)}" for name, source in sources.items()),
        steps=len(learned) if len(learned) == known else f"{len(learned)} of the first {known}",
        recipe=recipe,
        first=_number(rewards[:1]),
        last=_number(rewards[-1:]),
        results=[row for task in last for row in _both(first[task], last[task])],
        versions=", ".join(f"{name} {value}" for name, value in _versions(run).items()),
        yaml=recipe_to_yaml(recipe),
    )


def _origin(spec: AgentSpec | RecordingSpec) -> str:
    """What a peer is: a model, or what one answered in another run, by names that mean something
    elsewhere."""
    if isinstance(spec, RecordingSpec):
        return f"recorded in the run {Path(spec.path).name}"
    return _called(spec.model) if spec.learns else f"{_called(spec.model)}, which did not learn"


def _versions(run: Path) -> dict[str, str]:
    """Of the libraries that the run was made with, as far as it says so."""
    try:
        versions = json.loads((run / "state.json").read_text("utf-8"))["versions"]
    except (OSError, ValueError, KeyError, TypeError):
        return {"hacrl": "of an unknown version"}
    return dict(versions)


def _place(source: Source) -> str:
    """Of a file its name, since its place means nothing elsewhere."""
    plain = source.model_dump(mode="json")
    return origin(plain | ({"path": Path(plain["path"]).name} if plain.get("path") else {}))


def _both(first: Mapping[str, Any], last: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [first] if first["step"] == last["step"] else [first, last]


def _called(model: str) -> str:
    """A Hub id as it is; of a local folder its name, since its place means nothing elsewhere."""
    folder = resolve(model)
    return folder.name if os.path.isdir(folder) and not model.startswith(BUNDLED) else model


def _number(values: Sequence[float | None]) -> str:
    return f"{values[0]:.3f}" if values and values[0] is not None else "not scored"

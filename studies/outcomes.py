"""What the runs of the study measured, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from hacrl.runs.writing import read_lines
from studies.grid import Cell

__all__ = ["evaluations", "steps"]


def evaluations(cells: Sequence[Cell], runs: Path) -> pd.DataFrame:
    """A row per cell, agent, evaluation and held-out set; cells that share a run repeat its rows.

    Columns: part, method, setting, seed, learning_rate, agent, step (completed ones), rollouts and
    tokens (the agent's own until then), task, accuracy, problems, best (best@k), truncated.
    """
    rows: list[dict[str, Any]] = []
    for cell in cells:
        spent = _spent(read_lines(runs / cell.name / "metrics.jsonl"))
        for line in read_lines(runs / cell.name / "evaluations.jsonl"):
            rollouts, tokens = spent.get((line["agent"], line["step"]), (0, 0))
            best = next((line[key] for key in line if key.startswith("best@")), None)
            rows.append(
                {
                    **_cell(cell),
                    "agent": line["agent"],
                    "step": line["step"],
                    "rollouts": rollouts,
                    "tokens": tokens,
                    "task": line["task"],
                    "accuracy": line["value"],
                    "problems": line["problems"],
                    "best": best,
                    "truncated": line["truncated"],
                }
            )
    return pd.DataFrame(rows)


def steps(cells: Sequence[Cell], runs: Path) -> pd.DataFrame:
    """A row per run, step, learner and source (itself included) with what the source taught.

    Columns, beside those of the cell: step, agent, source, reward, capability, omega, bias
    (Theorem 4.1), guard, ratio, inside, teaching, alignment (Theorem 4.3), skipped. Names as in
    `docs/metrics.md`.
    """
    rows: list[dict[str, Any]] = []
    for cell in cells:
        for line in read_lines(runs / cell.name / "metrics.jsonl"):
            common = {
                **_cell(cell),
                "step": line["step"],
                "agent": line["agent"],
                "reward": line["reward"],
                "capability": line["capability"],
                "bias": line["baseline_bias"],
                "guard": line["guard_rate"],
                "skipped": line["skipped_updates"],
            }
            sources: Mapping[str, Any] = {line["agent"]: line["own"], **line["sources"]}
            alignment = line.get("alignment") or {}
            for source, taught in sources.items():
                rows.append(
                    {
                        **common,
                        "source": source,
                        "omega": line["omega"].get(source),
                        "ratio": taught["ratio_mean"],
                        "ratio_std": taught["ratio_std"],
                        "inside": taught["inside"],
                        "below": taught["below"],
                        "above": taught["above"],
                        "teaching": taught["teaching"],
                        "alignment": alignment.get(source),
                    }
                )
    return pd.DataFrame(rows)


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "part": cell.part,
        "method": cell.method,
        "setting": cell.setting,
        "seed": cell.seed,
        "learning_rate": cell.learning_rate,
    }


def _spent(metrics: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], tuple[int, int]]:
    """Own rollouts and generated tokens of each agent until each number of completed steps."""
    totals: dict[str, tuple[int, int]] = {}
    spent: dict[tuple[str, int], tuple[int, int]] = {}
    for line in metrics:
        agent = line["agent"]
        rollouts, tokens = totals.get(agent, (0, 0))
        rollouts += line["scored"] + line["unscored"]
        tokens += line["generated_tokens"]
        totals[agent] = rollouts, tokens
        spent[agent, line["step"] + 1] = rollouts, tokens
    return spent

"""The simulation of a large step runs through, and counts what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
ray = pytest.importorskip("ray")

from benchmarks.scale_simulation import (  # noqa: E402
    CHARACTERS,
    make_recipe,
    make_rollouts,
    medians,
    simulate,
)


def test_stand_ins_answer_at_the_length_that_is_asked_for() -> None:
    recipe = make_recipe(agents=2, prompts=3, samples=2, tokens=100, steps=2)
    rollouts = make_rollouts("agent0", recipe)
    assert [(r.prompt, r.sample) for r in rollouts] == [(p, s) for p in range(3) for s in range(2)]
    assert {round(len(r.text.partition(" \\boxed")[0]) / CHARACTERS) for r in rollouts} == {100}
    assert len({r.text for r in rollouts}) == len(rollouts)


def test_sums_are_of_steps_not_of_medians() -> None:
    rows = [{"a": 1.0, "b": 4.0}, {"a": 2.0, "b": 1.0}, {"a": 3.0, "b": 3.0}]
    assert medians(rows) == {"a": 2.0, "b": 3.0, "total": 5.0}


@pytest.mark.slow
def test_the_real_loop_makes_the_steps(tmp_path: Path) -> None:
    recipe = make_recipe(agents=2, prompts=3, samples=2, tokens=100, steps=2)
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        measured = simulate(recipe, tmp_path)
    finally:
        ray.shutdown()
    assert measured["responses"] == 2 * 3 * 2
    assert measured["controller_seconds"].keys() >= {"sample", "verify", "judge", "learn", "write"}
    assert measured["seconds"].keys() >= {"sample", "verify", "learn", "write", "total"}
    assert measured["peak_gb"]["controller"] >= measured["peak_gb"]["controller_before"] > 0
    lines = (tmp_path / "scale" / "metrics.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == recipe.steps * len(recipe.agents)

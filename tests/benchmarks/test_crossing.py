"""What training curves took until they reached an accuracy."""

from __future__ import annotations

from benchmarks.speed.crossing import Point, averaged, compared, end, targets


def _run(**accuracies: list[float]) -> list[Point]:
    """An evaluation every five steps; a step takes 2 seconds, 1 of them of the processor."""
    return [
        Point(5 * i, 10.0 * i, 5.0 * i, {agent: (0.0, value) for agent, value in now.items()})
        for i, now in enumerate(
            dict(zip(accuracies, values, strict=True))
            for values in zip(*accuracies.values(), strict=True)
        )
    ]


def test_costs_are_read_off_between_evaluations() -> None:
    ours = _run(kim=[0.0, 0.4, 0.6], lee=[0.0, 0.2, 0.2])
    theirs = {"kim": _run(kim=[0.0, 0.2, 0.5]), "lee": _run(lee=[0.0, 0.1, 0.3])}
    found = compared(ours, theirs, {"kim": 0.5, "lee": 0.1}, rollouts=8)
    assert found["steps_needed"] == {
        "hacpo": {"kim": 7.5, "lee": 2.5},
        "trl": {"kim": 10.0, "lee": 5.0},
    }
    # One run trains both agents, until the last of them is there; of theirs each ends by itself.
    assert found["hacpo"] == {"rollouts": 7.5 * 8 * 2, "seconds": 15.0, "cpu_seconds": 7.5}
    assert found["trl"] == {"rollouts": 15 * 8, "seconds": 30.0, "cpu_seconds": 15.0}
    assert found["share_of_trl"] == {"rollouts": 1.0, "seconds": 0.5, "cpu_seconds": 0.5}


def test_nothing_is_compared_where_one_does_not_get_there() -> None:
    ours = _run(kim=[0.0, 0.4])
    theirs = {"kim": _run(kim=[0.0, 0.1])}
    found = compared(ours, theirs, {"kim": 0.2}, rollouts=8)
    assert found["steps_needed"] == {"hacpo": {"kim": 2.5}, "trl": {"kim": None}}
    assert "share_of_trl" not in found


def test_targets_lie_on_the_way_to_the_mean_of_the_last_evaluations() -> None:
    run = _run(kim=[0.2, 0.9, 0.4, 0.5, 0.6])
    assert round(end(run, "kim"), 6) == 0.5
    assert round(targets({"kim": run}, 0.5)["kim"], 6) == 0.35
    assert end(run, "kim", 0) == 0.0


def test_runs_are_averaged_evaluation_by_evaluation() -> None:
    (first, last) = averaged([_run(kim=[0.0, 0.4]), _run(kim=[0.2, 0.8])])
    assert (last.step, last.seconds, last.cpu) == (5, 10.0, 5.0)
    assert round(first.accuracy["kim"][1], 6) == 0.1
    assert round(last.accuracy["kim"][1], 6) == 0.6

"""Rollouts of a run are read back by prompt, whatever batches they stood in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hacrl.agents.recorded import read_recorded, rollout_files
from hacrl.errors import UserError


def row(prompt: int, name: str, sample: int, text: str, agent: str = "kim") -> dict[str, Any]:
    return {
        "prompt": prompt,
        "prompt_id": f"t/{name}",
        "prompt_text": f"{name}?",
        "agent": agent,
        "sample": sample,
        "policy_version": 3,
        "text": text,
        "logprob": -1.5,
        "length": 2,
        "finished": True,
        "unshareable": None,
    }


def write(run: Path, step: int, rows: Sequence[dict[str, Any]]) -> Path:
    path = run / "rollouts" / f"step-{step:06d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def texts(run: Path, group_size: int, agent: str | None = None) -> dict[str, list[str]]:
    _, found = read_recorded(run, agent, group_size)
    return {key[0]: [one.text for one in group] for key, group in found.items()}


def test_the_newest_group_that_has_enough_is_taken(tmp_path: Path) -> None:
    write(tmp_path, 0, [row(0, "a", s, f"old {s}") for s in range(3)] + [row(1, "b", 0, "b")])
    write(tmp_path, 1, [row(4, "a", s, f"mid {s}") for s in (1, 0)])
    write(tmp_path, 2, [row(2, "a", 0, "new")])
    assert texts(tmp_path, 1) == {"t/a": ["new"], "t/b": ["b"]}
    assert texts(tmp_path, 2)["t/a"] == ["mid 0", "mid 1"]
    assert texts(tmp_path, 3)["t/a"] == ["old 0", "old 1", "old 2"]
    assert texts(tmp_path, 9)["t/a"] == ["old 0", "old 1", "old 2"], "the largest, else"


def test_steps_are_ordered_by_number(tmp_path: Path) -> None:
    for step in (999_999, 1_000_000):
        write(tmp_path, step, [row(0, "a", 0, str(step))])
    assert texts(tmp_path, 1) == {"t/a": ["1000000"]}
    assert len(rollout_files(tmp_path)) == 2


def test_a_prompt_twice_in_a_batch_gives_one_of_its_groups(tmp_path: Path) -> None:
    write(tmp_path, 0, [row(0, "a", 0, "first"), row(1, "a", 0, "second")])
    assert texts(tmp_path, 2) == {"t/a": ["second"]}


def test_another_text_is_another_prompt(tmp_path: Path) -> None:
    write(tmp_path, 0, [row(0, "a", 0, "one"), row(1, "a", 0, "two") | {"prompt_text": "b?"}])
    _, found = read_recorded(tmp_path, None, 1)
    assert found.keys() == {("t/a", "a?"), ("t/a", "b?")}


def test_one_of_several_agents(tmp_path: Path) -> None:
    write(tmp_path, 0, [row(0, "a", 0, "k"), row(0, "a", 0, "l", "lee")])
    assert texts(tmp_path, 1, "lee") == {"t/a": ["l"]}
    for agent, message in (
        (None, "agent: .* of kim, lee; name one"),
        ("tim", "no rollouts of tim"),
    ):
        with pytest.raises(UserError, match=message):
            read_recorded(tmp_path, agent, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"logprob": None}, "has a row without logprob"),
        ({"text": None}, "has a row without text"),
        ({"logprob": float("nan")}, "is no such number"),
        ({"length": 0}, "is no such number"),
    ],
)
def test_rows_that_are_not_whole_are_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = write(tmp_path, 0, [row(0, "a", 0, "x"), row(0, "a", 1, "y") | changes])
    with pytest.raises(UserError, match=f"^path: {re.escape(str(path))} {message}|{message}"):
        read_recorded(tmp_path, None, 1)


def test_what_cannot_be_read_is_refused_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^path: there is no run at"):
        read_recorded(tmp_path / "no", None, 1)
    with pytest.raises(UserError, match=r"^path: .* has no rollouts"):
        read_recorded(tmp_path, None, 1)
    path = write(tmp_path, 0, [row(0, "a", 0, "x")])
    whole = pq.read_table(path)
    pq.write_table(whole.drop_columns(["logprob"]), path)
    with pytest.raises(UserError, match=r"^path: .*step-000000.parquet cannot be read \(") as error:
        read_recorded(tmp_path, None, 1)
    assert len(str(error.value).splitlines()) == 1
    path.write_bytes(b"PAR1 it is not")
    with pytest.raises(UserError, match=r"^path: .*step-000000.parquet cannot be read \(") as error:
        read_recorded(tmp_path, None, 1)
    assert len(str(error.value).splitlines()) == 1

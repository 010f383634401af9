"""Records survive the way through Arrow columns, whatever they hold."""

from __future__ import annotations

import dataclasses
import math
import pickle
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hacrl.agents.learning.reporting import LessonRecord
from hacrl.columns import LESSONS, PROMPTS, ROLLOUTS, from_table, to_table
from hacrl.fleet.columns import from_columns, to_columns
from hacrl.records import Outcome, Pool, Prompt, Rollout, Verdict, Verified

# Of the records, not of how busy the machine is.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

TEXT = st.text(max_size=20)
MAYBE = st.none() | TEXT
SMALL = st.integers(0, 2**31 - 1)


@st.composite
def rollouts(draw: st.DrawFn, prompt: int = 0, agent: str = "kim", sample: int = 0) -> Rollout:
    return Rollout(
        prompt=prompt,
        agent=agent,
        sample=sample,
        policy_version=draw(st.integers(0, 2**40)),
        text=draw(TEXT),
        logprob=draw(st.floats(allow_nan=False)),
        length=draw(SMALL),
        finished=draw(st.booleans()),
        unshareable=draw(MAYBE),
    )


HISTORY = st.lists(st.tuples(TEXT, TEXT), max_size=2).map(tuple)
PROMPT = st.builds(Prompt, id=TEXT, task=TEXT, text=TEXT, gold=TEXT, system=MAYBE, history=HISTORY)
VERDICT = st.builds(
    Verdict, reward=st.none() | st.floats(), outcome=st.sampled_from(Outcome), answer=MAYBE
)


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    agents = draw(st.lists(TEXT, min_size=1, max_size=3, unique=True))
    prompts = draw(st.lists(PROMPT, min_size=1, max_size=2))
    size = draw(st.integers(1, 2))
    rows = [
        Verified(draw(rollouts(prompt, agent, sample)), draw(VERDICT))
        for agent in agents
        for prompt in range(len(prompts))
        for sample in range(size)
    ]
    return Pool(draw(st.integers(0, 9)), tuple(agents), tuple(prompts), size, tuple(rows))


@unhurried
@given(st.lists(rollouts(), max_size=4))
def test_rollouts_return_as_they_were(records: list[Rollout]) -> None:
    table = pickle.loads(pickle.dumps(to_table(records, ROLLOUTS), protocol=5))
    assert from_table(table, Rollout) == records


@unhurried
@given(pools())
def test_a_pool_returns_without_the_answers_that_were_found(pool: Pool) -> None:
    rows = tuple(
        Verified(row.rollout, dataclasses.replace(row.verdict, answer=None)) for row in pool.rows
    )
    back = from_columns(pickle.loads(pickle.dumps(to_columns(pool), protocol=5)))
    assert back == dataclasses.replace(pool, rows=rows)


@unhurried
@given(st.lists(PROMPT, max_size=3))
def test_prompts_return_without_their_metadata(prompts: list[Prompt]) -> None:
    rich = [dataclasses.replace(prompt, metadata={"any": object()}) for prompt in prompts]
    assert from_table(to_table(rich, PROMPTS), Prompt) == prompts


def test_values_come_back_as_plain_python() -> None:
    """Those of NumPy could not be written as JSON."""
    rollout = Rollout(0, "kim", 0, 1, "a", -math.inf, 2, True)
    (back,) = from_table(to_table([rollout], ROLLOUTS), Rollout)
    assert [type(x) for x in (back.prompt, back.length)] == [int] * 2
    assert type(back.logprob) is float
    assert type(back.finished) is bool


LESSON: dict[str, Any] = {
    **dict.fromkeys(("learner", "agent"), TEXT),
    **dict.fromkeys(("prompt", "sample", "tokens"), SMALL),
    "advantage": st.floats(allow_nan=False),
    "left_out": MAYBE,
    "update": st.none() | SMALL,
    **{name: st.none() | st.floats(allow_nan=False) for name in ("log_ratio", "below", "above")},
    "teaches": st.booleans(),
    "finite": st.none() | st.booleans(),
}


@unhurried
@given(st.lists(st.builds(LessonRecord, **LESSON), max_size=4))
def test_lessons_return_as_they_were(lessons: list[LessonRecord]) -> None:
    assert LESSONS.names == [field.name for field in dataclasses.fields(LessonRecord)]
    assert from_table(to_table(lessons, LESSONS), LessonRecord) == lessons

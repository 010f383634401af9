"""What travels between the controller and the agents: text and numbers, never a tensor.

The records hold plain Python values, so they pickle, become Arrow columns, and can be stored as
Parquet. A rollout carries no token ids: its author keeps those, and every other agent encodes the
text by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Decoding", "Outcome", "Pool", "Prompt", "Rollout", "Turn", "Verdict", "Verified"]


class Outcome(StrEnum):
    """What the verifier made of a response."""

    RIGHT = "right"
    WRONG = "wrong"
    NO_ANSWER = "no_answer"
    """The response holds no answer in the expected form."""
    NOT_VERIFIABLE = "not_verifiable"
    """The gold answer cannot be judged by this verifier."""
    TIMEOUT = "timeout"
    SCORER_ERROR = "scorer_error"


@dataclass(frozen=True, slots=True)
class Decoding:
    """How responses are drawn.

    Args:
        max_new_tokens: limit of a response, end token included.
        batch_size: sequences that are generated together.
        greedy: always the most likely token; the temperature then has no influence.
        temperature: of the full distribution.
    """

    max_new_tokens: int
    batch_size: int
    greedy: bool = False
    temperature: float = 1.0


Turn = tuple[str, str]
"""Of a conversation: role and content."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One problem of a task.

    `text` is the user's turn with the task's instruction already in it; `system` an optional system
    message; `history` the turns between the two, where the problem is a conversation; `gold` the
    reference answer as the verifier wants it, and `alternatives` others that are right as well.
    `metadata` is for verifiers that need more than the gold answer.
    """

    id: str
    task: str
    text: str
    gold: str
    system: str | None = None
    history: tuple[Turn, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    alternatives: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Arrow gives lists back.
        turns = tuple((role, content) for role, content in self.history)
        object.__setattr__(self, "history", turns)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All turns, as (role, content): system, history, and the user's."""
        system: tuple[Turn, ...] = () if self.system is None else (("system", self.system),)
        return (*system, *self.history, ("user", self.text))


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verifier's judgement. `reward` is None when the response could not be scored.

    Unscored is not zero: such a row is left out of every mean and of every update.
    """

    reward: float | None
    outcome: Outcome
    answer: str | None = None

    def __post_init__(self) -> None:
        if self.reward is not None and not math.isfinite(self.reward):
            object.__setattr__(self, "reward", None)


@dataclass(frozen=True, slots=True)
class Rollout:
    """One sampled response.

    Args:
        prompt: position of the prompt in the step's batch. Groups are formed by position, so the
            same problem twice in a batch stays two groups.
        agent: name of the agent that sampled it.
        sample: 0-based number within the group.
        policy_version: number of optimizer updates its author had made.
        text: the decoded response without the end token. Where the author's prompt ends in an
            opening of reasoning such as `<think>`, it begins with that, which was not sampled.
        logprob: log π_old(y), the sum over the author's own tokens, end token included, in nats at
            the sampling temperature (Eq. 11).
        length: |y| in the author's tokens, end token included.
        finished: whether the author ended the response itself, as opposed to the length limit.
        unshareable: why the text cannot be given to others, None if it can.
    """

    prompt: int
    agent: str
    sample: int
    policy_version: int
    text: str
    logprob: float
    length: int
    finished: bool
    unshareable: str | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """A rollout with its verdict."""

    rollout: Rollout
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Pool:
    """The joint set of one step: every agent's verified responses to the same prompts.

    Args:
        step: 0-based step.
        agents: names, in the order of the recipe.
        prompts: the batch of P prompts.
        group_size: G, responses per agent and prompt.
        rows: verified rollouts, grouped by agent, then prompt, then sample: n·P·G where all are
            there. An agent that does not learn may lack some.

    Raises:
        ValueError: a row is there twice, in another place, or of no agent, prompt or sample.
    """

    step: int
    agents: tuple[str, ...]
    prompts: tuple[Prompt, ...]
    group_size: int
    rows: tuple[Verified, ...]

    def __post_init__(self) -> None:
        order = {agent: number for number, agent in enumerate(self.agents)}
        size = (len(self.prompts), self.group_size)
        before = (-1, 0, 0)
        for place in map(_place, self.rows):
            agent, prompt, sample = place
            here = (order.get(agent, -1), prompt, sample)
            inside = 0 <= prompt < size[0] and 0 <= sample < size[1]
            if agent not in order or not inside or here <= before:
                raise ValueError(
                    "a pool has at most one row per agent, prompt and sample, in that order; "
                    f"{place} is out of place"
                )
            before = here

    def of(self, agent: str) -> Sequence[Verified]:
        """The rows of one agent, P·G where all are there."""
        return [row for row in self.rows if row.rollout.agent == agent]

    def rewards(self) -> list[list[list[float]]]:
        """Rewards as nested lists [agents][prompts][samples]; NaN where unscored or missing."""
        flat = {_place(row): row.verdict.reward for row in self.rows}

        def reward(agent: str, prompt: int, sample: int) -> float:
            value = flat.get((agent, prompt, sample))
            return math.nan if value is None else value

        return [
            [[reward(a, p, g) for g in range(self.group_size)] for p in range(len(self.prompts))]
            for a in self.agents
        ]


def _place(row: Verified) -> tuple[str, int, int]:
    return row.rollout.agent, row.rollout.prompt, row.rollout.sample

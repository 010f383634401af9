"""The settings of rollouts: which prompts, how responses are drawn and how they are verified."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hacrl.config.bounds import Count, Gibibytes, Processes, Rows, Seconds, Temperature, Tokens
from hacrl.config.strict import Strict


class Prompts(Strict):
    """Which prompts are used."""

    max_tokens: Tokens = 1024
    """Longest prompt, under each agent's own template."""
    too_long: Literal["drop", "refuse"] = "drop"
    """What to do with a prompt that is too long for any agent."""


class Sampling(Strict):
    """How responses are drawn."""

    group_size: Count = 8
    """G, responses per agent and prompt."""
    multiplier: Count = 1
    """Multiplies both G and the mini-batches (GSPO×2 is 2), so an update keeps its size."""
    temperature: Temperature = 1.0
    max_new_tokens: Tokens = 512
    batch_size: Count = 256
    """Sequences that are generated together. Rounding apart, changes nothing learned."""


class Verification(Strict):
    """How responses are judged. Changes nothing learned unless a limit is met."""

    workers: Processes = 1
    """Processes: at most 32, or four for every processor of the machine where that is more."""
    seconds: Seconds = 10.0
    """Limit of the processor time for judging one response; docs/rewards.md says what counts."""
    memory: Gibibytes = 2.0
    """Limit of each process's address space, in GiB."""
    max_chars: Rows = 1_000_000
    """A longer response is not read at all and counts as one without an answer."""
    max_errors: float = Field(default=0.5, ge=0.0, le=1.0)
    """The run stops when the verifier of a task fails on more than this share of its responses in
    one step."""

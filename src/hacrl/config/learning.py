"""The settings of learning: how rollouts become optimizer updates."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hacrl.config.bounds import Count, LearningRate, Rows
from hacrl.config.strict import Strict

Decay = Annotated[float, Field(ge=0.0, lt=1.0)]
"""Of a moving average."""


class Update(Strict):
    """How the pool of a step becomes optimizer updates."""

    mini_batches: Count = 1
    """M, own mini-batches a step; a learner with s sources makes (1+s)·M updates."""
    order: Literal["own_first", "mixed"] = "own_first"
    micro_batch_tokens: Rows | None = None
    """Padded tokens that are computed at once; rounding apart, changes nothing learned. None is
    2,048 on a CPU and 16,384 elsewhere."""
    kl: float = Field(default=0.0, ge=0.0, le=1e6)
    """Weight of the KL to the frozen start on own responses; 0 keeps no reference."""
    old_logprobs: Literal["auto", "sampler", "recompute"] = "auto"
    """Where log π_old of own responses comes from: the sampler, or one more forward pass of the
    learner before its first update. `auto` recomputes unless the sampler's are exact, which they
    are in float32 without autocast or quantization; of an engine, its probe has to say so."""
    max_skipped: Rows = 10
    """The run stops when an agent has skipped more updates in a row than this, because their loss
    or gradient was not finite. Changes nothing learned before."""
    alignment_every: Rows | None = None
    """Steps between two measurements of the gradients' alignment (Theorem 4.3); None: never. One
    costs about as much as the updates on 1/M of the rows. Changes nothing learned."""
    gradient_checkpointing: bool = False
    """Compute activations twice to save memory. Rounding apart, changes nothing learned."""
    autocast: Literal["off", "bfloat16"] = "off"


class Optimizer(Strict):
    """AdamW and its schedule."""

    learning_rate: LearningRate = 1e-6
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    epsilon: float = Field(default=1e-8, ge=1e-20, le=1e6)
    weight_decay: float = Field(default=0.0, ge=0.0, le=1e3)
    max_grad_norm: float = Field(default=1.0, ge=1e-12, le=1e12)
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """After the warm-up. `linear` and `cosine` fall to 0 at the end of the run."""
    warmup_updates: int = Field(default=0, ge=0, le=10**9)
    """W, with any schedule: update u of a run, counted from 0, has u/W of the learning rate while
    u < W. Skipped updates do not count."""

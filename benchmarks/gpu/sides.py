"""The two sides: one agent of ours, and TRL's trainer, each with its phases measured."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import Dataset  # type: ignore[import-untyped]
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from benchmarks.gpu.meter import Meter
from benchmarks.speed.turns import Side
from benchmarks.speed.with_hacrl import HacrlWork, Steps
from benchmarks.speed.with_trl import as_trl, settings
from benchmarks.speed.work import Work, prompts, rewards

__all__ = ["Job", "serve_hacrl", "serve_trl"]


@dataclass(frozen=True, slots=True)
class Job:
    """Args:
    work: of a step.
    folder: of the model.
    device: where it computes; on a GPU under autocast to bfloat16.
    scratch: where the trainer may write.
    rows_at_once: `per_device_train_batch_size` of TRL's.
    """

    work: Work
    folder: Path
    device: str
    scratch: Path
    rows_at_once: int

    @property
    def on_gpu(self) -> bool:
        return self.device.startswith("cuda")


def serve_hacrl(side: Side, job: Job) -> None:
    """One step a turn."""
    meter = Meter(on_gpu=job.on_gpu)
    steps = Steps(
        HacrlWork(
            job.work,
            {},
            changes={
                "agents": {"one": {"model": str(job.folder), "device": job.device}},
                "update": {"autocast": "bfloat16" if job.on_gpu else "off"},
            },
        )
    )
    while side.wait():
        meter.begin("sample")
        rollouts = steps.sample()
        tokens = sum(rollout.length for own in rollouts.values() for rollout in own)
        meter.begin("learn")
        steps.learn(rollouts)
        side.done(meter.end(tokens))


class _Turns(TrainerCallback):
    """A turn is an optimizer step, which samples first."""

    def __init__(self, side: Side, trainer: _Metered) -> None:
        self._side = side
        self._trainer = trainer

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        if not self._side.wait():
            raise SystemExit(0)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self._side.done(self._trainer.meter.end(self._trainer.new_tokens))


class _Metered(GRPOTrainer):
    """Measures its sampling, and what comes after it up to the end of the step."""

    meter: Meter
    new_tokens: int

    def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
        self.meter.begin("sample")
        generated = super()._generate_single_turn(*args, **kwargs)  # type: ignore[no-untyped-call]
        self.new_tokens = sum(len(ids) for ids in generated[0])
        self.meter.begin("learn")
        return generated


def serve_trl(side: Side, job: Job) -> None:
    """One optimizer step a turn, from sampling to the update."""
    warnings.simplefilter("ignore")
    work = job.work
    tokenizer = AutoTokenizer.from_pretrained(job.folder)
    by_place: list[float | None] = [*rewards(work)]

    def reward(completions: Sequence[Any], **_: Any) -> list[float | None]:
        return by_place

    trainer = _Metered(
        model=AutoModelForCausalLM.from_pretrained(job.folder),
        reward_funcs=reward,
        args=GRPOConfig(
            output_dir=str(job.scratch),
            max_steps=10_000,
            **settings(
                work.prompts * work.group_size,
                job.rows_at_once,
                work.group_size,
                work.max_new_tokens,
                use_cpu=not job.on_gpu,
                bf16=job.on_gpu,
            ),
        ),
        train_dataset=Dataset.from_list(
            [{"prompt": as_trl(prompt, tokenizer.chat_template)} for prompt in prompts(work)]
        ),
        processing_class=tokenizer,
    )
    trainer.meter = Meter(on_gpu=job.on_gpu)
    trainer.add_callback(_Turns(side, trainer))
    trainer.train()

"""TRL's side: `GRPOTrainer` as GSPO, with the settings that were found fastest."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
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

from benchmarks.speed.turns import Side
from benchmarks.speed.work import Work, prompts, rewards
from hacrl.records import Prompt

__all__ = ["TrlWork", "serve_trl", "settings"]


@dataclass(frozen=True, slots=True)
class TrlWork:
    """Args:
    folder: of the model.
    scratch: where the trainer may write.
    rows_at_once: `per_device_train_batch_size`.
    updates: optimizer updates from each step's responses, one after another over all of them.
    sample_once: learn from the first step's responses in every step.
    changes: other arguments of `GRPOConfig`.
    """

    work: Work
    folder: Path
    scratch: Path
    rows_at_once: int
    updates: int = 1
    sample_once: bool = False
    changes: dict[str, Any] = field(default_factory=dict)


def settings(
    rows: int, rows_at_once: int, group_size: int, max_new_tokens: int, **changes: Any
) -> dict[str, Any]:
    """Arguments of `GRPOConfig`: GSPO, and nothing that costs time without need.

    Args:
        rows: responses of a step.
        rows_at_once: of a forward and backward pass.
    """
    return {
        "per_device_train_batch_size": rows_at_once,
        "gradient_accumulation_steps": rows // rows_at_once,
        "num_generations": group_size,
        "max_completion_length": max_new_tokens,
        "importance_sampling_level": "sequence",
        "loss_type": "grpo",  # the mean over sequences
        "epsilon": 3e-4,
        "epsilon_high": 4e-4,
        "learning_rate": 1e-6,
        "lr_scheduler_type": "constant",
        "max_grad_norm": 1.0,
        "optim": "adamw_torch_fused",
        "gradient_checkpointing": False,
        "bf16": False,
        "use_cpu": True,
        "report_to": "none",
        "logging_strategy": "no",
        "save_strategy": "no",
        "disable_tqdm": True,
        "shuffle_dataset": False,
        "dataloader_pin_memory": False,
        **changes,
    }


class _Turns(TrainerCallback):
    """Lets the trainer begin a step when it is its turn.

    Args:
        updates: optimizer updates of a turn.
    """

    def __init__(self, side: Side, updates: int) -> None:
        self._side = side
        self._updates = updates

    def on_step_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        if state.global_step % self._updates == 0 and not self._side.wait():
            raise SystemExit(0)

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        if state.global_step % self._updates == 0:
            self._side.done()


class _SamplesOnce(GRPOTrainer):
    """Keeps the responses of the first step."""

    _kept: Any = None

    def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
        if self._kept is None:
            self._kept = super()._generate_single_turn(*args, **kwargs)  # type: ignore[no-untyped-call]
        return self._kept


def serve_trl(side: Side, job: TrlWork) -> None:
    """One optimizer step a turn, from sampling to the update."""
    warnings.simplefilter("ignore")
    work = job.work
    tokenizer = AutoTokenizer.from_pretrained(job.folder)
    by_place: list[float | None] = [*rewards(work)]

    def reward(completions: Sequence[Any], **_: Any) -> list[float | None]:
        return by_place

    kind = _SamplesOnce if job.sample_once else GRPOTrainer
    trainer = kind(
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
                num_iterations=job.updates,
                **job.changes,
            ),
        ),
        train_dataset=Dataset.from_list(
            [{"prompt": as_trl(prompt, tokenizer.chat_template)} for prompt in prompts(work)]
        ),
        processing_class=tokenizer,
        callbacks=[_Turns(side, job.updates)],
    )
    trainer.train()


def as_trl(prompt: Prompt, template: str | None) -> Any:
    """A conversation where the model has a template, plain text where it has none."""
    return [{"role": "user", "content": prompt.text}] if template else prompt.text

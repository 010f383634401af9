"""Plain `generate`: what sampling with transformers alone costs."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from benchmarks.speed.turns import Side, serve
from benchmarks.speed.with_hacrl import HacrlWork
from benchmarks.speed.work import prompts

__all__ = ["serve_generate"]


def serve_generate(side: Side, job: HacrlWork) -> None:
    """The responses of one step a turn, all in one batch, without their log-probabilities."""
    (folder,) = job.folders.values()
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    texts: list[Any] = [prompt.text for prompt in prompts(job.work)]
    if tokenizer.chat_template:
        texts = [
            tokenizer.apply_chat_template(
                [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
            )
            for text in texts
        ]
    rows = [text for text in texts for _ in range(job.work.group_size)]

    def step() -> None:
        batch = tokenizer(
            rows, return_tensors="pt", padding=True, add_special_tokens=not tokenizer.chat_template
        )
        with torch.no_grad():
            model.generate(
                input_ids=batch["input_ids"],
                attention_mask=batch["attention_mask"],
                do_sample=True,
                top_k=0,
                max_new_tokens=job.work.max_new_tokens,
            )

    serve(side, step)

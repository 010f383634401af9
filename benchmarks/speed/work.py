"""The work that is measured: models, prompts, lengths and rewards, the same for every side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from hacrl.paths import BUNDLED, resolve
from hacrl.records import Prompt

__all__ = ["SMOLLM", "Lengths", "ModelName", "Work", "folder", "prompts", "rewards"]

ModelName = Literal["tiny", "smollm"]
Lengths = Literal["equal", "mixed"]

SMOLLM = Path("models/smollm2-135m-instruct")
"""Made by `make real`."""


@dataclass(frozen=True, slots=True)
class Work:
    """One step's work.

    Args:
        model: `tiny`, a random Qwen3 of 0.8 million parameters over characters, or `smollm`,
            SmolLM2-135M-Instruct.
        lengths: `equal`, every response runs to the limit, or `mixed`, every token ends its
            response with about the same probability, so that most are far shorter than the limit.
        silent: whether every second group has equal rewards and thus no signal.
        prompts: P.
        group_size: G.
        max_new_tokens: limit of a response.
    """

    model: ModelName
    lengths: Lengths
    silent: bool
    prompts: int
    group_size: int
    max_new_tokens: int

    @property
    def name(self) -> str:
        return f"{self.model} {self.lengths}{' half silent' if self.silent else ''}"


def prompts(work: Work) -> list[Prompt]:
    """The prompts of every step; each step has the same."""
    lines = resolve(f"{BUNDLED}demo/assets/train.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines[:: len(lines) // work.prompts][: work.prompts]]
    ask = "{}" if work.model == "tiny" else "What is {} Think step by step, then give the number."
    return [
        Prompt(f"arithmetic/{i}", "arithmetic", ask.format(row["question"]), row["answer"])
        for i, row in enumerate(rows)
    ]


def rewards(work: Work) -> list[float]:
    """The reward of each response by its place, as [prompts · samples].

    They have nothing to do with what was written, so that both sides have the same rows to learn
    from.
    """
    return [
        1.0 if work.silent and prompt % 2 else float(sample % 2)
        for prompt in range(work.prompts)
        for sample in range(work.group_size)
    ]


def folder(work: Work, parent: Path, seed: int = 0) -> Path:
    """A model folder in which the end tokens bring about the wanted lengths.

    Made once below `parent`; every side loads it in the ordinary way.
    """
    path = parent / f"{work.model}-{work.lengths}-{seed}"
    if not path.exists():
        model, tokenizer, ends = (_tiny if work.model == "tiny" else _smollm)(work.lengths, seed)
        tokenizer.eos_token = tokenizer.convert_ids_to_tokens(ends[0])
        model.config.eos_token_id = list(ends)
        model.generation_config = GenerationConfig(
            eos_token_id=list(ends), pad_token_id=tokenizer.pad_token_id
        )
        model.save_pretrained(path)
        tokenizer.save_pretrained(path)
    return path


Made = tuple[PreTrainedModel, PreTrainedTokenizerBase, Sequence[int]]


def _tiny(lengths: Lengths, seed: int) -> Made:
    """All tokens are about equally likely but the filling token, which is never drawn.

    Every embedding but that of the filling token points one way; so does every hidden state.
    """
    tokenizer = AutoTokenizer.from_pretrained(resolve(f"{BUNDLED}demo/assets/qwen3-char"))
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        model = Qwen3ForCausalLM(
            Qwen3Config(
                vocab_size=len(tokenizer),
                hidden_size=128,
                intermediate_size=384,
                num_hidden_layers=4,
                num_attention_heads=4,
                num_key_value_heads=2,
                head_dim=32,
                max_position_embeddings=512,
                tie_word_embeddings=True,
                pad_token_id=tokenizer.pad_token_id,
                bos_token_id=None,
            )
        )
    weight: torch.Tensor = model.model.embed_tokens.weight.data
    weight[:, 0] = 1.0
    weight[tokenizer.pad_token_id, 0] = -1.0
    never, sometimes = tokenizer.pad_token_id, tokenizer.eos_token_id
    return model, tokenizer, [never if lengths == "equal" else sometimes]


def _smollm(lengths: Lengths, seed: int) -> Made:
    model = AutoModelForCausalLM.from_pretrained(SMOLLM)
    tokenizer = AutoTokenizer.from_pretrained(SMOLLM)
    if seed:  # another agent of the same size
        with torch.random.fork_rng([]), torch.no_grad():
            torch.manual_seed(seed)
            for parameter in model.parameters():
                parameter.mul_(1 + 1e-3 * torch.randn(()))
    names = ["<reponame>"] if lengths == "equal" else [tokenizer.eos_token, ".", ",", " to", "\n"]
    known = tokenizer.get_vocab()
    return model, tokenizer, [known[name.replace(" ", "Ġ").replace("\n", "Ċ")] for name in names]

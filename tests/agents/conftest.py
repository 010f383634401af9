"""Small policies of two families with tokenizers that differ in what matters."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from hacrl.agents.policy.policy import Policy
from hacrl.records import Prompt, Rollout

ALPHABET = "0123456789+-=;# \nabc"


def byte_tokenizer(
    *, begin: bool, merges: bool, pad_is_end: bool = False
) -> PreTrainedTokenizerFast:
    """Byte-level BPE: all bytes, and optionally a few merges, so that splits are not unique."""
    vocab = {symbol: i for i, symbol in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    pairs = [("1", "2"), ("+", "1"), ("a", "b"), ("ab", "c")] if merges else []
    for left, right in pairs:
        vocab[left + right] = len(vocab)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<end>", "<fill>", "<begin>"])
    if begin:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<begin> $A",
            special_tokens=[("<begin>", tokenizer.token_to_id("<begin>"))],
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<end>",
        pad_token="<end>" if pad_is_end else "<fill>",
        bos_token="<begin>" if begin else None,
        clean_up_tokenization_spaces=False,
    )


def character_tokenizer() -> PreTrainedTokenizerFast:
    """One token a character of a small alphabet; anything else is unknown."""
    vocab = {symbol: i for i, symbol in enumerate(["<unknown>", "<stop>", "<fill>", *ALPHABET])}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[], unk_token="<unknown>"))
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<stop>",
        pad_token="<fill>",
        unk_token="<unknown>",
        clean_up_tokenization_spaces=False,
    )


def make_policy(name: str, family: str, tokenizer: PreTrainedTokenizerFast) -> Policy:
    """A random model of the family over the tokenizer's vocabulary."""
    config_class, model_class = {
        "qwen": (Qwen3Config, Qwen3ForCausalLM),
        "llama": (LlamaConfig, LlamaForCausalLM),
    }[family]
    with torch.random.fork_rng([]):
        torch.manual_seed(len(name))
        model = model_class(
            config_class(
                vocab_size=len(tokenizer),
                hidden_size=32,
                intermediate_size=48,
                num_hidden_layers=2,
                num_attention_heads=2,
                num_key_value_heads=1,
                head_dim=16,
                max_position_embeddings=256,
                tie_word_embeddings=family == "qwen",
                initializer_range=0.4,
            )
        ).eval()
    original = GenerationConfig(eos_token_id=tokenizer.eos_token_id)
    model.generation_config = copy.deepcopy(original)
    return Policy(name, model, tokenizer, (tokenizer.eos_token_id,), {}, original)


@pytest.fixture
def kim() -> Policy:
    """Qwen3 architecture, characters, no begin token."""
    return make_policy("kim", "qwen", character_tokenizer())


@pytest.fixture
def lee() -> Policy:
    """Llama architecture, byte-level BPE with merges, begin token added to texts, pad = end."""
    return make_policy("lee", "llama", byte_tokenizer(begin=True, merges=True, pad_is_end=True))


@pytest.fixture
def prompt() -> Callable[[str], Prompt]:
    return lambda text: Prompt(id=text, task="t", text=text, gold="")


def make_rollout(agent: str, ids: list[int], text: str = "", *, finished: bool = True) -> Rollout:
    return Rollout(0, agent, 0, 0, text, -1.0 * len(ids), len(ids), finished)

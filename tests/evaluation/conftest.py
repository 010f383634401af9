"""A tiny random model that can read and write any text, saved as anybody would save one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Such small models gain nothing from more, and lose much where cores are shared."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """One token a byte."""
    vocab = {symbol: i for i, symbol in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<end>", "<fill>"])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<end>",
        pad_token="<fill>",
        clean_up_tokenization_spaces=False,
    )


def save_model(folder: Path, seed: int, positions: int = 4096) -> Path:
    """Save a random Llama; a large spread of its weights makes what it says depend on the input."""
    tokenizer = byte_tokenizer()
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=len(tokenizer),
                hidden_size=32,
                intermediate_size=48,
                num_hidden_layers=2,
                num_attention_heads=2,
                num_key_value_heads=1,
                max_position_embeddings=positions,
                initializer_range=0.4,
                bos_token_id=None,
                eos_token_id=tokenizer.eos_token_id,
                pad_token_id=tokenizer.pad_token_id,
            )
        )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder."""
    return save_model(tmp_path_factory.mktemp("models") / "reader", 1)


@pytest.fixture(scope="session")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another one, with other weights."""
    return save_model(tmp_path_factory.mktemp("models") / "writer", 2)

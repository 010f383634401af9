"""The two architectures, with random weights, and how they are sampled."""

from __future__ import annotations

from pathlib import Path

from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

__all__ = ["MAX_POSITIONS", "build_llama", "build_qwen3", "sampling_config", "save_model"]

MAX_POSITIONS = 128
"""Tokens of prompt and response together."""


def build_qwen3(
    tokenizer: PreTrainedTokenizerFast, *, width: int = 64, layers: int = 3
) -> PreTrainedModel:
    """Qwen3, a few narrow layers."""
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=width,
            intermediate_size=width * 5 // 2,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=16,
            max_position_embeddings=MAX_POSITIONS,
            tie_word_embeddings=True,
            initializer_range=0.08,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            use_cache=True,
        )
    )


def build_llama(tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """Llama, two layers."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=192,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            head_dim=16,
            max_position_embeddings=MAX_POSITIONS,
            tie_word_embeddings=True,
            initializer_range=0.08,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            use_cache=True,
        )
    )


def sampling_config(tokenizer: PreTrainedTokenizerFast) -> GenerationConfig:
    """Plain sampling from the model's own distribution, without any cut of its tail."""
    return GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )


def save_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write an ordinary Hugging Face model folder."""
    model.generation_config = sampling_config(tokenizer)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for path in folder.iterdir():  # safetensors come readable for their owner only
        path.chmod(0o644)

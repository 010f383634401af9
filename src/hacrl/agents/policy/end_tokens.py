"""Which tokens end an agent's responses, and with which its chat template closes a turn."""

from __future__ import annotations

import re

from transformers import GenerationConfig, PretrainedConfig, PreTrainedTokenizerBase

from hacrl.agents.policy.source import location
from hacrl.agents.policy.templates import TemplateReader, chat_template, render
from hacrl.agents.policy.vocabulary import control_tokens
from hacrl.config.agents import AgentSpec
from hacrl.errors import UserError
from hacrl.records import Prompt

__all__ = ["closing_token", "end_ids", "load_generation_config"]

_ANSWER = "6007 wombats"
"""What no template says of itself."""


def load_generation_config(
    name: str, spec: AgentSpec, config: PretrainedConfig
) -> GenerationConfig:
    """The generation config that a model comes with, without its weights.

    Args:
        config: of the model; says what the file would, where there is none.
    """
    try:
        return GenerationConfig.from_pretrained(
            location(name, spec), revision=spec.revision or "main"
        )
    except OSError:
        return GenerationConfig.from_model_config(config)


def end_ids(
    name: str, spec: AgentSpec, tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig
) -> tuple[int, ...]:
    """The tokenizer's end token first, then those of the generation config, then the recipe's.

    Raises:
        UserError: there is none.
    """
    declared = generation.eos_token_id
    ids = [tokenizer.eos_token_id, *(declared if isinstance(declared, list) else [declared])]
    known = tokenizer.get_vocab()
    ids += [known[token] for token in spec.stop]
    unique = tuple(dict.fromkeys(int(i) for i in ids if i is not None))
    if not unique:
        raise UserError(
            f"agent {name}: {spec.model} declares no end token; name one with agents.{name}.stop"
        )
    return unique


def closing_token(reader: TemplateReader) -> str | None:
    """The first control token behind a response in the middle of a conversation.

    None without a template, with one that takes no such conversation, or that closes turns with
    text alone.
    """
    tokenizer = reader.tokenizer
    control = control_tokens(tokenizer)
    if chat_template(tokenizer) is None or not control:
        return None
    history = (("user", "What are they?"), ("assistant", _ANSWER))
    prompt = Prompt(id="", task="", text="How many are there?", gold="", history=history)
    try:
        _, _, behind = render(reader, prompt).partition(_ANSWER)
    except UserError:
        return None
    pattern = "|".join(re.escape(token) for token in sorted(control, key=len, reverse=True))
    match = re.search(pattern, behind)
    return None if match is None else match[0]

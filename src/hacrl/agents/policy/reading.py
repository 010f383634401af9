"""What is worth saying about how an agent reads its prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hacrl.agents.policy.encoding import Reader, encode_prompt
from hacrl.agents.policy.end_tokens import closing_token
from hacrl.agents.policy.templates import chat_template, prints_the_clock
from hacrl.agents.policy.vocabulary import spelled, without_embedding
from hacrl.records import Prompt

__all__ = ["Reading", "read"]

_SHOWN = 8
"""Tokens."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What there is to say: `notes` are facts, `warnings` call for a look. A sentence each."""

    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read(reader: Reader, prompts: Sequence[Prompt]) -> Reading:
    """Look at how an agent reads the prompts of a run, of which there is at least one.

    Raises:
        UserError: see `encode_prompt`.
    """
    tokenizer, name = reader.tokenizer, reader.name
    notes, warnings = [], []
    if chat_template(tokenizer) is None:
        ids = encode_prompt(reader, prompts[0])[:_SHOWN]
        tokens = " ".join(map(repr, tokenizer.convert_ids_to_tokens(ids)))
        notes.append(
            f"agent {name} has no chat template; prompts are plain text, and begin with the ids "
            f"{', '.join(map(str, ids))} ({tokens})"
        )
    if prints_the_clock(reader):
        notes.append(
            f"agent {name}: its chat template prints the time; it sees {reader.clock} all through "
            "the run, or what clock says"
        )
    closing = closing_token(reader)
    if closing is not None and tokenizer.convert_tokens_to_ids(closing) not in reader.stop_ids:
        warnings.append(
            f"agent {name}: its chat template closes turns with {closing}, but that does not end "
            "its responses, which then run on to sampling.max_new_tokens; set "
            f'agents.{name}.stop: ["{closing}"]'
        )
    if beyond := without_embedding(tokenizer, reader.vocab_size):
        warnings.append(
            f"agent {name}: its tokenizer has {len(beyond)} tokens, such as {beyond[0]!r}, for "
            f"which its model with {reader.vocab_size} embeddings has none; they cannot be used"
        )
    texts = [f"{prompt.system or ''}\n{prompt.text}" for prompt in prompts]
    if spelled_out := spelled(tokenizer, texts):
        first = min(spelled_out)
        acts = (
            "they are encoded as text"
            if reader.split_special_tokens
            else f"they act as such; agents.{name}.split_special_tokens: true encodes them as text"
        )
        (notes if reader.split_special_tokens else warnings).append(
            f"agent {name}: {len(spelled_out)} of {len(prompts)} prompts spell control tokens of "
            f"its tokenizer, first {spelled_out[first]} in {prompts[first].id}; {acts}"
        )
    return Reading(tuple(notes), tuple(warnings))

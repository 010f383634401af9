"""From text to token ids and back: prompts, own responses, other agents' responses.

Prompt ids are made once and used for sampling and learning alike. An own response is never encoded
again. A foreign response is encoded once from its text, with no special token added but the end
token, and that only if its author finished.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol, cast

from hacrl.agents.policy.policy import Policy
from hacrl.agents.policy.templates import TemplateReader, chat_template, render
from hacrl.agents.policy.vocabulary import control_tokens, spelled
from hacrl.errors import UserError
from hacrl.records import Prompt

__all__ = ["Reader", "decode_response", "encode_foreign", "encode_prompt"]

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


_PLACE = (
    "\N{LEFT WHITE LENTICULAR BRACKET}place of the text {number}\N{RIGHT WHITE LENTICULAR BRACKET}"
)
"""Stands for a text whose place in a template is looked for."""


class Reader(TemplateReader, Protocol):
    """What it takes to encode prompts: a policy without its weights."""

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """Every id that ends a response."""

    @property
    def split_special_tokens(self) -> bool:
        """Whether control tokens that a prompt spells are encoded as the text that they are."""

    @property
    def vocab_size(self) -> int:
        """Rows of the model's embedding."""


def encode_prompt(policy: Reader, prompt: Prompt) -> list[int]:
    """Ids of a prompt as this agent sees it: its chat template, or the plain text without one.

    Raises:
        UserError: the template fails or leaves out part of the prompt, the ids begin with two begin
            tokens, or the model has no embedding for one of them.
    """
    tokenizer = policy.tokenizer
    template = chat_template(tokenizer) is not None
    text = render(policy, prompt) if template else _plain(prompt)
    ids: list[int] = tokenizer.encode(text, add_special_tokens=not template)
    own = [content for _, content in prompt.turns]
    if policy.split_special_tokens and spelled(tokenizer, own):
        ids = _split(policy, prompt, text, template=template)
    elif not template and tokenizer.encode("a")[-1:] == [tokenizer.eos_token_id]:
        ids = ids[:-1]  # some close every text
    begin = tokenizer.bos_token_id
    if begin is not None and ids[:2] == [begin, begin]:
        raise UserError(
            f"agent {policy.name}: prompts begin with two begin tokens; the chat template prints "
            "one that the text already has"
        )
    if not ids:
        raise UserError(f"agent {policy.name}: prompt {prompt.id} has no tokens")
    if (largest := max(ids)) >= policy.vocab_size:
        raise UserError(
            f"agent {policy.name}: prompt {prompt.id} has the token "
            f"{tokenizer.convert_ids_to_tokens(largest)!r} of id {largest}, for which its model "
            f"with {policy.vocab_size} embeddings has none; resize them, or change template or text"
        )
    return ids


def _plain(prompt: Prompt) -> str:
    return "\n\n".join(content for _, content in prompt.turns)


def _split(policy: Reader, prompt: Prompt, text: str, *, template: bool) -> list[int]:
    """Ids of a prompt whose control tokens are the template's alone.

    What the template says and what the prompt says are encoded apart.

    Args:
        text: of the whole prompt, as the template puts it.

    Raises:
        UserError: the tokenizer knows no way to write them as text, or the template changes what it
            is given.
    """
    tokenizer = policy.tokenizer
    own = [content for _, content in prompt.turns]
    marks = [_PLACE.format(number=number) for number in range(len(own))]
    system = None if prompt.system is None else marks[0]
    between = marks[-1 - len(prompt.history) : -1]
    history = tuple((role, mark) for (role, _), mark in zip(prompt.history, between, strict=True))
    placed = dataclasses.replace(prompt, text=marks[-1], system=system, history=history)
    rest = render(policy, placed) if template else _plain(placed)
    control = set(control_tokens(tokenizer).values())
    ids: list[int] = [] if template else _begin(policy)
    again = ""
    for mark, inserted in zip(marks, own, strict=True):
        before, _, rest = rest.partition(mark)
        kept = inserted if before + inserted in text else inserted.strip()  # templates trim
        piece = tokenizer.encode(kept, add_special_tokens=False, split_special_tokens=True)
        if not control.isdisjoint(piece):
            raise UserError(
                f"agent {policy.name}: its tokenizer ({type(tokenizer).__name__}) cannot encode "
                f"control tokens as text, as in prompt {prompt.id}; drop split_special_tokens"
            )
        ids += [*tokenizer.encode(before, add_special_tokens=False), *piece]
        again += before + kept
    if again + rest != text:
        raise UserError(
            f"agent {policy.name}: its chat template changes the text of prompt {prompt.id}, so "
            "its control tokens cannot be distinguished from text; drop split_special_tokens"
        )
    ids += tokenizer.encode(rest, add_special_tokens=False)
    return ids


def _begin(policy: Reader) -> list[int]:
    """What the tokenizer puts before a plain text."""
    begin = policy.tokenizer.bos_token_id
    return [begin] if begin is not None and policy.tokenizer.encode("a")[:1] == [begin] else []


def decode_response(policy: Policy, token_ids: list[int], finished: bool) -> tuple[str, str | None]:
    """Text of a sampled response without its end token, and why it cannot be shared, if so.

    Other special tokens stay visible in the text, so that a verifier sees what was written; such a
    response is not shared, for its marker means nothing to another family. Ids beyond the
    tokenizer, of which a padded output layer has some, are no text at all.
    """
    body = token_ids[:-1] if finished else token_ids
    known = [i for i in body if i in policy.token_ids]
    text = policy.tokenizer.decode(known, clean_up_tokenization_spaces=False)
    assert isinstance(text, str)
    if len(known) < len(body):
        return text, "no_token"
    if not text:
        return text, "empty"
    if not policy.control_ids.isdisjoint(body):
        return text, "special_token"
    if REPLACEMENT in text:  # a character cut in half, or bytes that are not text
        return text, "undecodable"
    return text, None


def encode_foreign(
    policy: Policy, texts: Sequence[str], finished: Sequence[bool]
) -> list[tuple[list[int], str | None]]:
    """Ids of other agents' responses for this learner, and why it cannot learn from one, if so.

    The ids must mean exactly the text: no control token that the text merely spells, no unknown
    token, and decoding gives the text back.
    """
    if not texts:
        return []
    tokenizer = policy.tokenizer
    encoded = tokenizer([*texts], add_special_tokens=False, return_attention_mask=False)
    ids_of = cast("list[list[int]]", encoded["input_ids"])
    again = tokenizer.batch_decode(ids_of, clean_up_tokenization_spaces=False)
    unknown = tokenizer.unk_token_id
    control = policy.control_ids - {unknown}
    results: list[tuple[list[int], str | None]] = []
    for ids, text, decoded, end in zip(ids_of, texts, again, finished, strict=True):
        if not control.isdisjoint(ids):
            results.append((ids, "control_token"))
        elif (unknown is not None and unknown in ids) or max(ids, default=0) >= policy.vocab_size:
            results.append((ids, "unknown_token"))
        elif decoded != text:
            results.append((ids, "not_representable"))
        else:
            results.append((ids + [policy.stop_ids[0]] * end, None))
    return results

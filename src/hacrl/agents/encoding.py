"""From text to token ids and back: prompts, own responses, other agents' responses.

Prompt ids are made once and used for sampling and learning alike. An own response is never encoded
again. A foreign response is encoded once from its text, with no special token added but the end
token, and that only if its author finished.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from jinja2 import TemplateError, TemplateSyntaxError
from transformers import PreTrainedTokenizerBase

from hacrl.agents.policy import Policy
from hacrl.errors import UserError
from hacrl.records import Prompt

__all__ = ["Reader", "decode_response", "encode_foreign", "encode_prompt"]

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Reader(Protocol):
    """What it takes to encode prompts: a policy without its weights."""

    @property
    def name(self) -> str: ...

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase: ...

    @property
    def template_args(self) -> Mapping[str, Any]: ...


def encode_prompt(policy: Reader, prompt: Prompt) -> list[int]:
    """Ids of a prompt as this agent sees it: its chat template, or the plain text without one.

    Raises:
        UserError: the template refuses the prompt, or the ids begin with two begin tokens.
    """
    tokenizer = policy.tokenizer
    if tokenizer.chat_template:
        turns = [("system", prompt.system)] if prompt.system is not None else []
        turns += [*prompt.history, ("user", prompt.text)]
        messages = [{"role": role, "content": content} for role, content in turns]
        try:
            encoded = tokenizer.apply_chat_template(
                messages,
                add_generation_prompt=True,
                tokenize=True,
                return_dict=False,
                **policy.template_args,
            )
        except TemplateSyntaxError as error:
            raise UserError(
                f"agent {policy.name}: its chat template is broken: line {error.lineno}: "
                f"{error.message}; mend it, or give the agent another chat_template"
            ) from error
        except TemplateError as error:
            raise UserError(
                f"agent {policy.name}: its chat template refuses prompt {prompt.id} ({error}); "
                "drop the task's system, or give the agent another chat_template"
            ) from error
        ids = cast("list[int]", encoded)
    else:
        before = [] if prompt.system is None else [prompt.system]
        text = "\n\n".join([*before, *(content for _, content in prompt.history), prompt.text])
        ids = tokenizer.encode(text)
        if ids and ids[-1] == tokenizer.eos_token_id:  # some tokenizers close every text
            ids = ids[:-1]
    begin = tokenizer.bos_token_id
    if begin is not None and ids[:2] == [begin, begin]:
        raise UserError(
            f"agent {policy.name}: prompts begin with two begin tokens; the chat template prints "
            "one that the text already has"
        )
    if not ids:
        raise UserError(f"agent {policy.name}: prompt {prompt.id} has no tokens")
    return ids


def decode_response(policy: Policy, token_ids: list[int], finished: bool) -> tuple[str, str | None]:
    """Text of a sampled response without its end token, and why it cannot be shared, if so.

    Other special tokens stay visible in the text, so that a verifier sees what was written; such a
    response is not shared, for its marker means nothing to another family.
    """
    body = token_ids[:-1] if finished else token_ids
    text = policy.tokenizer.decode(body, clean_up_tokenization_spaces=False)
    assert isinstance(text, str)
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
        elif unknown is not None and unknown in ids:
            results.append((ids, "unknown_token"))
        elif decoded != text:
            results.append((ids, "not_representable"))
        else:
            results.append((ids + [policy.stop_ids[0]] * end, None))
    return results

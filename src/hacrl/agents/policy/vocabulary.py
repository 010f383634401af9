"""Which ids a tokenizer and a model have, and which of a tokenizer's tokens are no text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from hacrl.errors import UserError

__all__ = ["check_sizes", "control_tokens", "spelled", "without_embedding"]


def control_tokens(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    """Tokens that are no text, with their ids: named special ones and added ones marked so."""
    added = {
        token.content: i for i, token in tokenizer.added_tokens_decoder.items() if token.special
    }
    named = zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True)
    return added | {str(token): int(i) for token, i in named}


def spelled(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> dict[int, str]:
    """Texts that spell a control token which the tokenizer takes for one.

    Returns:
        The first such token of each, by the text's position.
    """
    control = control_tokens(tokenizer)
    if not control:
        return {}
    pattern = re.compile("|".join(re.escape(token) for token in sorted(control, key=len)[::-1]))
    ids = set(control.values())
    spellings = {}
    for position, text in enumerate(texts):
        match = pattern.search(text)
        if match and not ids.isdisjoint(tokenizer.encode(text, add_special_tokens=False)):
            spellings[position] = match.group()
    return spellings


def without_embedding(tokenizer: PreTrainedTokenizerBase, rows: int) -> list[str]:
    """Tokens whose ids are beyond the rows of a model's embedding, in the order of their ids."""
    beyond = {i: token for token, i in tokenizer.get_vocab().items() if i >= rows}
    return [beyond[i] for i in sorted(beyond)]


def check_sizes(name: str, tokenizer: PreTrainedTokenizerBase, rows: int) -> None:
    """See that a model has an embedding for every token that texts can have.

    A control token without one is let pass: some models come with tokens of larger relatives, which
    nothing uses. Where one is used after all, `encode_prompt` says so.

    Args:
        rows: of the model's embedding.

    Raises:
        UserError: it has not.
    """
    beyond = without_embedding(tokenizer, rows)
    control = control_tokens(tokenizer)
    end = tokenizer.eos_token
    wrong = [token for token in beyond if token not in control or token == end]
    if wrong:
        what = "end token" if wrong[0] == end else "token"
        raise UserError(
            f"agent {name}: its tokenizer has the {what} {wrong[0]!r} of id "
            f"{tokenizer.convert_tokens_to_ids(wrong[0])}, but its model has only {rows} "
            f"embeddings, for ids up to {rows - 1}; resize them (resize_token_embeddings), or take "
            "the tokenizer that belongs to the model"
        )

"""Responses that begin before the first token that is drawn.

Where a chat template, or a plain prompt, ends in an opening of reasoning such as `<think>`, the
model writes what comes after it. The text of its response begins with that opening all the same:
otherwise truncated reasoning looks like an answer, and a peer whose prompts have no such
end would learn to close what nothing has opened. The author writes the opening with probability 1,
so its log-probability stays that of the tokens it drew.
"""

from __future__ import annotations

from collections.abc import Sequence

from hacrl.agents.policy.encoding import Reader
from hacrl.records import Prompt
from hacrl.verify.reasoning import begun_reasoning

__all__ = ["find_opening", "without_opening"]


def find_opening(policy: Reader, prompt: Prompt, ids: Sequence[int]) -> str:
    """The opening of reasoning that an encoded prompt leaves open at its end, "" if there is none.

    Args:
        ids: of the prompt, from `encode_prompt`.
    """
    tokenizer = policy.tokenizer
    text = tokenizer.decode(list(ids), clean_up_tokenization_spaces=False)
    assert isinstance(text, str)
    return begun_reasoning(text, prompt.text, tokenizer.all_special_tokens)


def without_opening(text: str, opening: str) -> str | None:
    """What of a response a learner has to write after its own prompt.

    None if its prompt opens reasoning and the response does not begin that way: the learner writes
    such a response with probability 0, so there is nothing to learn.

    Args:
        opening: of the learner's own prompt, see `find_opening`.
    """
    return text[len(opening) :] if text.startswith(opening) else None

"""Where reasoning begins and ends in a text, in the notations of the families that write it.

A chat template, or the end of a plain prompt, may write the opening itself, so that a response
begins in the middle of its reasoning. Who verifies or shares a response puts that opening back in
front of it; see `begun_reasoning`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

__all__ = ["after_reasoning", "begun_reasoning"]

_NAME = r"(?:seed:|longcat_)?(?:think(?:ing)?|thoughts?|reasoning|scratchpad)(?::\w{1,20})?"
_PAIRS = (
    (rf"(?i:<{_NAME}>)", rf"(?i:</{_NAME}>)"),  # DeepSeek, Qwen, EXAONE, Seed-OSS, LongCat, …
    (r"\[THINK\]", r"\[/THINK\]"),  # Magistral
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),  # OpenThinker, Sky-T1
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),  # Command
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),  # Apertus
    (r"◁think▷", r"◁/think▷"),  # Kimi
    (r"<\|channel>thought\b", r"<channel\|>"),  # Gemma
    (r"<\|channel\|>analysis<\|message\|>", r"<\|channel\|>final<\|message\|>"),  # gpt-oss
    (r"<unused94>", r"<unused95>"),  # MedGemma
    (r"\[unused16\]", r"\[unused17\]"),  # Pangu
)
_MARK = re.compile(
    f"(?P<open>{'|'.join(left for left, _ in _PAIRS)})|{'|'.join(right for _, right in _PAIRS)}"
)
_FIRST = re.compile(r"[<\[◁]")
"""What every mark begins with."""


def after_reasoning(text: str) -> str | None:
    """What follows the last end of reasoning, all if there is none; None if it was cut.

    Reasoning that is opened and not closed was cut. Linear in the length of the text.
    """
    end, cut = 0, False
    for mark in _marks(text):
        cut = mark["open"] is not None
        if not cut:
            end = mark.end()
    return None if cut else text[end:]


def begun_reasoning(prompt: str, question: str, control: Iterable[str] = ()) -> str:
    """The end of a prompt from the opening of reasoning on that it leaves open; "" without one.

    An opening that the question merely speaks of is none; one that it ends in is, if the prompt
    ends there too.

    Args:
        prompt: as the model sees it.
        question: the user's turn, as it stands somewhere in the prompt.
        control: tokens that begin or end a turn: what stands before one is no part of the response.
    """
    marks = list(_marks(prompt))
    if not marks or marks[-1]["open"] is None:
        return ""
    opening, rest = marks[-1], prompt[marks[-1].end() :]
    if rest.strip():
        spoken = question.strip()
        asked = prompt.rfind(spoken)
        if asked < 0 or opening.start() < asked + len(spoken):
            return ""
        if any(token in rest for token in control if token):
            return ""
    return prompt[opening.start() :]


def _marks(text: str) -> Iterator[re.Match[str]]:
    """All marks, one behind another. A long text is searched for one character, much faster."""
    end = 0
    for first in _FIRST.finditer(text):
        if first.start() >= end and (mark := _MARK.match(text, first.start())):
            end = mark.end()
            yield mark

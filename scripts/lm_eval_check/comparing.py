"""What both sides made of the same problems, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hacrl.evaluation.answers import Answer

__all__ = ["STOP_TEXTS", "report"]

STOP_TEXTS = ["Question:", "</s>", "<|im_end|>"]
"""Those of lm-eval's gsm8k."""
_SHOWN = 5
"""Differences of each kind that are printed."""


def report(ours: Sequence[Answer], theirs: Mapping[int, Mapping[str, Any]]) -> int:
    """Print both accuracies and the differences by reason; 1 if one has no explanation."""
    rows = [(answer, theirs[row]) for row, answer in enumerate(ours)]
    right_there = sum(sample["exact_match"] for _, sample in rows)
    right_here = sum(answer.right for answer in ours)
    print(f"{len(rows)} problems; right in lm-eval {right_there:.0f}, right here {right_here}")
    reasons: dict[str | None, list[str]] = {}
    for answer, sample in rows:
        if not same_text(answer, sample):
            line = f"{answer.response!r} here, {sample['resps'][0][0]!r} there"
            reasons.setdefault(None, []).append(f"{answer.problem}: {line}")
        elif answer.right != bool(sample["exact_match"]):
            read = f"{answer.answer!r} here, {sample['filtered_resps'][0]!r} there"
            line = f"{answer.problem}: gold {answer.gold!r}, read as {read}"
            reasons.setdefault(explanation(answer, sample), []).append(line)
    for reason, lines in reasons.items():
        print(f"{len(lines)} differ: {reason or 'NO EXPLANATION'}")
        for line in lines[:_SHOWN]:
            print(f"  {line}")
    if not reasons:
        print("every response and every verdict is the same")
    return int(None in reasons)


def same_text(answer: Answer, sample: Mapping[str, Any]) -> bool:
    """Whether both wrote the same up to lm-eval's stop texts."""
    ours = answer.response
    for text in STOP_TEXTS:
        ours = ours.split(text)[0]
    return ours.strip() == str(sample["resps"][0][0]).strip()


def explanation(answer: Answer, sample: Mapping[str, Any]) -> str | None:
    """Why the same text is judged differently."""
    read = str(sample["filtered_resps"][0])
    if any(text in answer.response for text in STOP_TEXTS):
        return "lm-eval ended the response at a stop text, here it went on"
    if answer.answer is None:
        return "the answer has only a form that lm-eval's filter accepts"
    if read == "[invalid]":
        return "lm-eval's filter finds no `#### number`; here a box, or another line, is enough"
    if read != answer.answer:
        return "lm-eval takes the first answer, here the last one counts"
    if answer.right:
        return "equal in value, spelt differently"
    return None

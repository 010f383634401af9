"""Reference answers that no response can be judged by, recognized from their text."""

from __future__ import annotations

import re

from hacrl.audit.making import verifier_of
from hacrl.audit.tries import Audited
from hacrl.config.tasks import Task
from hacrl.config.verifiers import ChoiceVerifier, ExactVerifier, MathVerifier, VerifierSpec
from hacrl.records import Outcome, Prompt
from hacrl.verify.making import make_verifier
from hacrl.verify.math import MAX_ANSWER

__all__ = ["looks_like_no_answer", "why_not_verifiable", "why_unjudged"]

_COMMAND = re.compile(r"\\(?!text|mathrm|mbox)[A-Za-z]+|\\(?:text|textbf|mathrm|mbox)(?=\s?\{)")
_WORD = re.compile(r"[^\W\d_]{2,}(?:['’-][^\W\d_]+)*")
_HEDGE = re.compile(
    r"\b(?:about|approximately|approx|around|roughly|nearly|almost|at least|at most|more than"
    r"|less than|fewer than|between|up to|over|under|circa)\s+(?=\S*\d|a\b|half)",
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|would|can|could|should|because|there|it|he|she|they"
    r"|we|makes?|takes?|needs?|gets?|equals)\b",
    re.IGNORECASE,
)
_AMID = re.compile(r"[A-Za-z]{2,}\s+[A-Za-z]{2,}\s+\$?\d[\d.,]*\s+[A-Za-z]{2,}")
"""A number in the middle of words."""
_WORDS = 5
"""Words from which on a text counts as a sentence for `math`."""
_LONG = 12
"""Words from which on no model repeats a text letter by letter, as `exact` requires."""


def why_unjudged(row: Audited, task: Task, answer: str) -> str | None:
    """Why no response can be judged by a reference answer; None if nothing speaks against it.

    Args:
        row: the reference answer, scored against itself.
        answer: what the verifier reads as the reference answer's answer.
    """
    spec = verifier_of(task)
    if row.verdict.outcome is Outcome.NOT_VERIFIABLE:
        match spec:
            case MathVerifier() if not answer:
                return "the gold is empty"
            case MathVerifier() if len(answer) > MAX_ANSWER:
                return f"the reference answer is longer than {MAX_ANSWER:,} characters"
            case MathVerifier():
                return looks_like_no_answer(answer) or "math cannot read the reference answer"
            case ChoiceVerifier():
                return f"the reference answer names none of the options {spec.options}"
            case _:
                return why_not_verifiable(spec, row.prompt)
    if isinstance(spec, MathVerifier):
        return looks_like_no_answer(answer)
    if isinstance(spec, ExactVerifier) and len(_WORD.findall(answer)) >= _LONG:
        return "the reference answer is a text that no model repeats letter by letter"
    return None


def why_not_verifiable(spec: VerifierSpec, prompt: Prompt) -> str:
    """What the verifier itself says of a reference answer that it cannot judge by."""
    return (
        make_verifier(spec).why_not_verifiable(prompt)
        or "the verifier cannot judge by this reference answer"
    )


def looks_like_no_answer(answer: str) -> str | None:
    """Why a reference answer is neither number nor formula nor name; None if it may be one."""
    text = re.sub(r"[{}~]", " ", _COMMAND.sub(" ", answer))
    words = _WORD.findall(text)
    if _HEDGE.search(text):
        return "the reference answer is hedged (about, at least, …), so no single value is right"
    if re.search(r"[.!?]\s+[A-Z]", text) and len(words) > 2:
        return "the reference answer is several sentences"
    stated = re.fullmatch(r"\s*[A-Z].*[a-z]\.\s*", text) or _AMID.search(text)
    if (
        len(words) >= _WORDS
        or (len(words) > 2 and stated)
        or (len(words) > 1 and _SAYS.search(text))
    ):
        return "the reference answer is a sentence, not an answer"
    return None

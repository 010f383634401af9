"""Variations of a reference answer that are certainly right or wrong, by type of verifier."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping

from hacrl.audit.changes import LAST_DIGIT, changes, last_digit
from hacrl.audit.characters import letters_exchanged
from hacrl.audit.placing import in_a_box, not_answers, places
from hacrl.audit.shapes import read_gold
from hacrl.audit.spellings import spellings
from hacrl.audit.tries import Expected, Try
from hacrl.config.tasks import Task
from hacrl.config.verifiers import (
    ChoiceVerifier,
    CodeVerifier,
    ExactVerifier,
    MathVerifier,
    PartSpec,
    ReasoningGymVerifier,
    SumVerifier,
)
from hacrl.records import Prompt
from hacrl.seeding import derive_seed
from hacrl.tasks import load_task
from hacrl.verify import Choice
from hacrl.verify.extract import extract_gold
from hacrl.verify.making import make_verifier

__all__ = ["NONSENSE", "last_digits", "make_tries", "said_by", "verifier_of"]

NONSENSE = ("none of them, I think", "qwzx", "?!")
"""Answers to nothing: a verifier that accepts one of them is too lenient."""

_Found = Iterable[tuple[str, str]]


def verifier_of(task: Task) -> PartSpec:
    """The verifier that says what is right: of a sum, that of its first part."""
    spec = task.verifier
    return spec.parts[0].verifier if isinstance(spec, SumVerifier) else spec


def said_by(task: Task, gold: str) -> str:
    """The answer that a reference text gives, as the task's verifier reads it."""
    spec = verifier_of(task)
    marker = getattr(spec, "marker", None)
    match spec:
        case ExactVerifier() | ReasoningGymVerifier() if marker is None:
            return gold.strip()
        case ChoiceVerifier():
            return Choice(marker, spec.options).gold(gold) or gold.strip()
        case MathVerifier() | ExactVerifier() | ReasoningGymVerifier():
            return extract_gold(gold, marker)
        case _:
            return gold


def make_tries(task: Task, prompt: Prompt) -> list[Try]:
    """Responses to a problem. Equal arguments give equal tries; the prompt's id decides what is
    drawn."""
    draw = random.Random(derive_seed(0, "audit", prompt.id))
    spec = verifier_of(task)
    answer = said_by(task, prompt.gold)
    match spec:
        case MathVerifier():
            tries = _math(answer, spec, draw)
        case ExactVerifier():
            tries = _exact(answer, spec, draw)
        case ChoiceVerifier():
            tries = _choice(answer, spec)
        case ReasoningGymVerifier():
            tries = _gym(answer, spec)
        case CodeVerifier():
            tries = _expect(Expected.WRONG, make_verifier(spec).wrong_responses(prompt).items())
        case _:
            tries = _expect(Expected.WRONG, ((f"nonsense: {text}", text) for text in NONSENSE))
    unique: dict[str, Try] = {}
    for attempt in tries:
        unique.setdefault(attempt.response, attempt)
    return list(unique.values())


def last_digits(tasks: Mapping[str, Task]) -> list[tuple[Prompt, Try]]:
    """Every reference answer of tasks of `math` with its last digit changed, but plain numbers.

    Raises:
        UserError: a source cannot be read.
    """
    pairs = []
    for name, task in tasks.items():
        for prompt in load_task(name, task):
            changed = last_digit(read_gold(said_by(task, prompt.gold)))
            if changed is not None:
                pairs.append((prompt, Try(LAST_DIGIT, in_a_box(changed), Expected.WRONG)))
    return pairs


def _expect(expected: Expected, parsed: _Found) -> Iterator[Try]:
    return (Try(kind, text, expected) for kind, text in parsed)


def _boxed(parsed: _Found) -> Iterator[tuple[str, str]]:
    return ((kind, in_a_box(text)) for kind, text in parsed)


def _math(answer: str, spec: MathVerifier, draw: random.Random) -> Iterator[Try]:
    gold = read_gold(answer)
    yield from _expect(Expected.RIGHT, places(answer, spec.marker))
    if spec.last_number and answer.isdecimal():
        text = f"Counting them all, there are {answer} of them."
        yield Try("the last number", text, Expected.RIGHT)
    yield from _expect(Expected.RIGHT, _boxed(spellings(gold)))
    if gold.value is not None and gold.value.denominator % 3 == 0:
        yield Try("rounded to two places", in_a_box(f"{float(gold.value):.2f}"), Expected.STRICT)
    yield from _expect(Expected.WRONG, _boxed(changes(gold, draw)))
    if (changed := last_digit(gold)) is not None:
        yield Try(LAST_DIGIT, in_a_box(changed), Expected.WRONG)
    yield from _expect(Expected.WRONG, not_answers(answer, spec.marker))


def _exact(answer: str, spec: ExactVerifier, draw: random.Random) -> Iterator[Try]:
    def said(text: str) -> str:
        return text if spec.marker is None else in_a_box(text)

    yield from _expect(Expected.RIGHT, places(answer, spec.marker, boxed=spec.marker is not None))
    if "\n" not in answer:
        for kind, text in (
            (r"\text{…}", rf"\text{{{answer}}}"),
            ("markdown bold", f"**{answer}**"),
            ("a final full stop", f"{answer}."),
        ):
            if answer[-1:].isalnum():
                yield Try(kind, said(text), Expected.RIGHT)
    for kind, text in (
        ("another case", answer.swapcase()),
        ("another decimal place", f"{answer}.0" if answer.isdecimal() else answer),
        ("quotation marks", f'"{answer}"'),
        ("an article", f"the {answer}"),
    ):
        if text != answer:
            yield Try(kind, said(text), Expected.STRICT)
    if permuted := letters_exchanged(answer, draw):
        yield Try("letters exchanged", said(permuted), Expected.WRONG)
    yield Try("a character missing", said(answer[1:] or "x"), Expected.WRONG)
    yield Try("more behind it", said(f"{answer} or not"), Expected.WRONG)
    if answer[-1:].isdigit():
        changed = f"{answer[:-1]}{(int(answer[-1]) + 1) % 10}"
        yield Try(LAST_DIGIT, said(changed), Expected.WRONG)
    wrong_texts = not_answers(answer, spec.marker, boxed=spec.marker is not None)
    yield from _expect(Expected.WRONG, ((k, t) for k, t in wrong_texts if t.strip() != answer))


def _choice(letter: str, spec: ChoiceVerifier) -> Iterator[Try]:
    yield from _expect(Expected.RIGHT, places(letter, spec.marker))
    yield from _expect(Expected.RIGHT, _choices(letter))
    for other in spec.options:
        if other != letter:
            for kind, text in _choices(other):
                yield Try(f"another letter, {kind}", text, Expected.WRONG)
    other = next(option for option in spec.options if option != letter)
    for kind, text in (
        ("two letters", f"Answer: {letter} or {other}"),
        ("two letters in a box", in_a_box(rf"{letter}, {other}")),
        ("all options listed", f"({letter}) this\n({other}) that"),
        ("taken back", f"Answer: {letter}. No, wait.\nAnswer: {other}"),
    ):
        yield Try(kind, text, Expected.WRONG)
    yield Try("in the middle of a sentence", f"I would pick {letter} here", Expected.STRICT)
    yield from _expect(Expected.WRONG, not_answers(letter, spec.marker))


def _choices(letter: str) -> Iterator[tuple[str, str]]:
    reason = "\nThe others do not fit, as one can see."
    yield "the letter alone", letter
    yield "the letter in parentheses", f"({letter})"
    yield "“Answer:”", f"Answer: {letter}"
    yield "“Answer:”, then an explanation", f"Answer: {letter}{reason}"
    yield "bold label", f"**Answer**: {letter}{reason}"
    yield "bold label and letter", f"**Answer:** **({letter})**{reason}"
    yield "a heading", f"### Answer\n{letter}{reason}"
    yield r"\textbf label", rf"\textbf{{Answer}}: {letter}"
    yield "a sentence", f"Therefore, the correct answer is ({letter})."
    yield "a sentence about an option", f"The correct option is **{letter}**."
    yield "the letter and its option", f"{letter}. What it says"
    yield r"\textbf{(…)} and its option", rf"\textbf{{({letter}) }}12"
    yield r"\text in a box", rf"\boxed{{\text{{({letter})}}}}"
    yield "the letter and its option in a box", rf"\boxed{{{letter}. What it says}}"


def _gym(answer: str, spec: ReasoningGymVerifier) -> Iterator[Try]:
    whole = spec.marker is None
    yield from _expect(Expected.RIGHT, places(answer, spec.marker, boxed=not whole))
    opposite = {"true": "False", "false": "True", "yes": "No", "no": "Yes"}.get(answer.lower())
    if opposite:
        text = opposite if whole else in_a_box(opposite)
        yield Try("the opposite", text, Expected.WRONG)
    for text in NONSENSE:
        yield Try(f"nonsense: {text}", text if whole else in_a_box(text), Expected.WRONG)
    yield Try("nothing", "", Expected.WRONG)

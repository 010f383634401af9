r"""Letter answers of multiple-choice questions.

The rule, in this order; only what follows the reasoning is read, and markup (emphasis, headings,
`\text{…}`, HTML, quotes) is no part of it:

1. The last complete, non-empty box, else what follows the last marker. It must be a letter and
   nothing else, or a letter and the text of its option: `B`, `b`, `(B)`, `B.`, `**B**`,
   `\text{B}`, `(B) Paris`, `B: Paris`. A marker before anything else is none.
2. Else what follows the last phrase that announces an answer: `Answer: D`, `the final answer is
   (b)`, `correct option: **C**`, or a line `Answer` by itself. A bare letter must be a capital, so
   that articles are none, and no further word may follow it but a reason (`because`, …).
3. Else the last line, if it is a letter and no more, or a letter and the text of its option
   (`B. Paris`, `(B) Paris`) where no other line is an option: a list of them is no answer.

It is no answer if that place names several letters (`A or B`), none of the options, or nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from dataclasses import dataclass

from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify.base import Verifier
from hacrl.verify.extract import after_reasoning, extract_answer, extract_gold

__all__ = ["Choice"]

_LINE = 200
"""Characters at the start of a line in which its letter must stand."""
_DECORATION = re.compile(
    r"\\(?:text|textbf|textit|textrm|textsf|texttt|mathrm|mathbf|mathsf|mbox|emph|bf|rm)\b"
    r"|\\[()\[\]]|[*_`${}\"“”«»~]|</?(?:b|strong|i|em|u|p|span)>|^[ \t]*(?:#{1,6}|>)[ \t]",
    re.MULTILINE | re.IGNORECASE,
)
_LETTER = re.compile(
    r"\s*(?:(?:option|choice|answer|letter)\b)?\s*:?\s*'?"
    r"(?:\(\s*(?P<round>[a-z])\s*\)|\[\s*(?P<square>[a-z])\s*\]|(?P<bare>[a-z]))(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_PHRASE = re.compile(
    r"\b(?:answer|option|choice)(?:\s{0,3}"
    r"(?:(?:would|should|must|will)\s{1,3}be|is|are|=>?|:|：|→|->|[-–—](?=\s))\s{0,3}(?:is\b)?:?"
    r"|\s{1,3}(?=\([A-Za-z]\)))"
    r"|^[ \t]*(?:(?:the|my|final|correct|best)[ \t]+){0,3}(?:answer|option|choice)[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_OPTION = re.compile(r"\s*(?:(?:\([A-Z]\)|\[[A-Z]\])\s*|[A-Z][.):]\s+)\S")
_REASON = re.compile(r"\s+(?:because|since|as|for|due|given|which|\()", re.IGNORECASE)
_ANOTHER = re.compile(
    r"\s*(?:,|/|&|\bor\b|\band\b)(?:[\s,/&]|\bor\b|\band\b)*(?P<open>[(\[]?)(?P<letter>[A-Za-z])(?![A-Za-z])"
)
_INDEX = re.compile(r"\d{1,2}")


@dataclass(frozen=True, slots=True)
class Choice(Verifier):
    """Right if the response names the letter of the reference answer.

    Args:
        marker: text after which an answer stands; None for no marker.
        options: the letters there are. A reference answer that is a number counts them from 0.
        correct, wrong: rewards.
    """

    marker: str | None = "####"
    options: str = "ABCDE"
    correct: float = 1.0
    wrong: float = 0.0

    def screen(self, prompt: Prompt, response: str) -> Verdict:
        """Decides everything. A reference answer that names no option is not verifiable."""
        gold = self.gold(prompt.gold)
        if gold is None:
            return self.verdict(Outcome.NOT_VERIFIABLE)
        answer = self.answer(response)
        if answer is None:
            return self.verdict(Outcome.NO_ANSWER)
        return self.verdict(Outcome.RIGHT if answer == gold else Outcome.WRONG, answer)

    def gold(self, text: str) -> str | None:
        """The letter that a reference answer names or numbers; None if it does neither."""
        text = extract_gold(text, self.marker)
        if _INDEX.fullmatch(text):
            return self.options[int(text)] if int(text) < len(self.options) else None
        return self._letter(text)

    def answer(self, response: str) -> str | None:
        """The letter that a response names, None if it names none or several."""
        box = extract_answer(response, None)
        if box is not None:
            return self._letter(box)
        marked = self._letter(extract_answer(response, self.marker) or "")
        if marked is not None:
            return marked
        # What is marked is no option: with `####`, it may be the heading of an explanation.
        visible = _undecorated(after_reasoning(response) or "").strip()
        phrase = deque(_PHRASE.finditer(visible), maxlen=1)
        if phrase:
            following = visible[phrase[0].end() :][:_LINE].lstrip()
            return self._letter(following.partition("\n")[0], prose=True)
        lines = visible.split("\n")
        options = sum(bool(_OPTION.match(line)) for line in lines)
        if options == 1 and _OPTION.match(lines[-1]):
            return self._letter(lines[-1])
        return self._letter(lines[-1], alone=True)

    def _letter(self, text: str, *, prose: bool = False, alone: bool = False) -> str | None:
        """The one option, as a capital, that a short text consists of or begins with.

        Args:
            prose: whether the text may go on as a sentence, in which a small letter is a word.
            alone: whether nothing may follow but punctuation.
        """
        match = _LETTER.fullmatch(_undecorated(text[:_LINE]))
        if match is None:
            return None
        bare, rest = match["bare"], match["rest"]
        letter = bare or match["round"] or match["square"]
        ended = not rest.strip() or rest[0] in ").:,;]'" or rest.lstrip()[0] in "-–—"
        if alone and rest.strip(" .):,;]"):
            return None
        if bare and prose and bare.islower():
            return None
        if bare and not ended and not (prose and _REASON.match(rest)):
            return None
        other = _ANOTHER.match(rest)
        if other and (not prose or other["open"] or other["letter"].isupper()):
            return None
        return letter.upper() if letter.upper() in self.options else None


def _undecorated(text: str) -> str:
    """A text without markup, and with letters such as `Ⓑ` in their plain form."""
    return _DECORATION.sub("", unicodedata.normalize("NFKC", text))

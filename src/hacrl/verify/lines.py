r"""What of a line is its answer: without markup around it, a label before it, a sentence after it.

A person who reads `**#### 42**`, `#### 42 ####`, `#### The answer is 42` or
`#### 42 I hope this helps.` reads 42. Nouns and units stay (`42 apples`): what they mean is for the
verifier to judge. Words are taken for a separate sentence only behind a number or a formula,
or where they are one of the phrases with which models take their leave.
"""

from __future__ import annotations

import re

__all__ = ["after_marker", "bare", "without_label"]

_KIND = r"(?:final|correct|right|overall|numerical|required|desired|my|our)"
_LABEL = (
    rf"(?:(?:so|thus|hence|therefore)\s?,?\s)?(?:the\s)?(?:{_KIND}\s){{0,2}}"
    r"(?:answer|result|solution)"
)
"""Names an answer; a regular expression to be matched without regard to case."""
_MARKS = r"[*_`]{0,4}"
_WITH_LABEL = re.compile(
    rf"(?:#{{1,6}}\s?)?{_MARKS}{_LABEL}{_MARKS}\s?(?:(?:is|=)\s?:?|[:：]){_MARKS}(?=\s|\S)\s*",
    re.IGNORECASE,
)
_HEADING = re.compile(rf"{_MARKS}{_LABEL}{_MARKS}\s?[:：]?{_MARKS}", re.IGNORECASE)
_DELIMITER = re.compile(r"\$\$?|\\\[|\\\(|```\w*|[-=*_]{3,}")
_EMPHASIS = re.compile(r"(?:[*_`]{1,4}|\\textbf\{|\\text\{)\s?$")
_CLOSING = {r"\textbf{": "}", r"\text{": "}"}
_LEAVE = re.compile(
    r"(?:[.!,;]|\s[-–—])?\s+(?:I\s(?:hope|trust|believe|think)\b|(?:I\s)?hope\s(?:this|that|it)\b"
    r"|(?:please\s)?(?:let\sme\sknow|feel\sfree)\b|if\syou\shave\b|thanks?\b(?:\syou)?|have\sa\s"
    r"|good\sluck\b|this\s(?:is|completes|concludes)\b|that\sis\s(?:the|my|our)\b"
    r"|is\s(?:the|my|our)\s(?:final\s|correct\s)?(?:answer|result|solution)\b"
    r"|(?:and\s)?we(?:'re|\sare)\sdone\b|q\.?e\.?d\b|∎).*",
    re.IGNORECASE,
)
_VALUE = r"[^A-Za-z]{0,60}\d[^A-Za-z\s]{0,60}|\$[^$]{1,200}\$|\\\([^$]{1,200}\\\)"
_SENTENCE = re.compile(
    rf"(?P<value>(?:{_VALUE})(?:\s?[a-z%°]{{1,20}}){{0,3}}?)(?:"
    r"[.!]\s+(?=[A-Z])"
    r"|\s?[,;]?\s(?=(?:because|since|so\sthat|as\s(?:required|desired|claimed|needed))\b)"
    r"|\s(?=(?:I|We|You|They|He|She|It|There|The|This|That|These|Thus|Therefore|Hence|So|Since"
    r"|Because|Note|Let|Please|If|Here|Now|Which)\s\w)"
    r").*",
)
_WRAPPED = re.compile(
    r"\s*(?:\*{1,3}|_{1,3}|`{1,3}|\$\$?|\\\(|\\\[|"
    r"\\(?:text|textbf|textit|textrm|textsf|texttt|mathrm|mathbf|mathsf|mbox|emph|operatorname)\s?\{)"
)
_ENDS = {"$": "$", "$$": "$$", "\\(": "\\)", "\\[": "\\]"}


def after_marker(text: str, marker: str) -> str | None:
    """The answer behind the last marker that something follows; None if there is none."""
    end = len(text)
    while (at := text.rfind(marker, 0, end)) >= 0:
        rest = text[at + len(marker) : end]
        if answer := _answer(text, at, rest, marker):
            return answer
        if rest.strip():
            return None
        # Nothing follows it: it closes a line (`#### 42 ####`), or the response was cut behind it.
        end = at
    return None


def without_label(text: str) -> str:
    """A text without the label in front of it, such as `Answer:` or `The answer is`."""
    match = _WITH_LABEL.match(text)
    if match is None or not text[match.end() :].strip(" .*_`"):
        return text
    return _unclosed(text[: match.end()], text[match.end() :])


def bare(text: str) -> str:
    r"""A text without the markup around all of it: `**Yes**`, `$\text{Yes}$` and `Yes` are one."""
    text = text.strip()
    while match := _WRAPPED.match(text):
        left = match[0].strip()
        right = "}" if left.endswith("{") else _ENDS.get(left, left)
        inner = text[match.end() : -len(right)]
        enclosed = len(text) >= match.end() + len(right) and text.endswith(right)
        if not enclosed or not inner.strip() or not _stands_alone(inner, right):
            break
        text = inner.strip()
    return text


def _stands_alone(inner: str, right: str) -> bool:
    """Whether what encloses a text is not two things that end and begin inside it."""
    if right != "}":
        return right not in inner
    depth = 0
    for character in inner:
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return False
    return depth == 0


def _answer(text: str, at: int, rest: str, marker: str) -> str | None:
    if marker.strip("#") == "":
        rest = rest.lstrip("#")  # a heading of another level
    lines = [line for line in (line.strip() for line in rest.strip().splitlines()) if line]
    if not lines:
        return None
    first = lines[0]
    if _HEADING.fullmatch(first):
        below = [line for line in lines[1:] if not _DELIMITER.fullmatch(line)]
        if not below:
            return None
        first = below[0]
    elif _DELIMITER.fullmatch(first) and len(lines) > 1:
        first = lines[1]
    line = text[text.rfind("\n", 0, at) + 1 : at]
    first = without_label(_enclosed(_unclosed(line, first), marker))
    return _without_sentence(first) or None


def _enclosed(text: str, marker: str) -> str:
    """A line without the marker, or the opening tag's counterpart, that closes it."""
    closing = f"</{marker[1:]}" if re.fullmatch(r"<\w+>", marker) else marker
    start, inside, _ = text.partition(closing)
    return start.strip() if inside and start.strip() else text


def _unclosed(before: str, text: str) -> str:
    """A text without the end of the emphasis that was opened before it."""
    opened = _EMPHASIS.search(before)
    if opened is None:
        return text.strip()
    left = opened[0].strip()
    right = _CLOSING.get(left, left)
    text = text.strip()
    ended = text.removesuffix(".").rstrip()
    if ended.endswith(right) and ended[: -len(right)].count(right) % 2 == 0:
        text = ended[: -len(right)].rstrip()
    return text


def _without_sentence(text: str) -> str:
    line, rest = text[:_LINE], text[_LINE:]
    if rest:  # no answer that a person would read
        return text
    if match := _SENTENCE.fullmatch(line):
        return match["value"].strip().rstrip(" .,;")
    return _LEAVE.sub("", line).strip() or text


_LINE = 400
"""Characters of a line that may hold a sentence beside an answer."""

r"""Mathematical equality by math-verify. Slow and unbounded, so imported in workers only.

Tolerance: math-verify takes numbers for equal if one is a decimal and both agree when rounded to
six decimal places, so 1/3 and 0.333333 are equal and 1/3 and 0.33 are not. That alone would make
all tiny numbers equal, hence equal numbers must also agree to one part in 100,000. `50\%` is
accepted for 50 and for 1/2.
"""

from __future__ import annotations

import logging
import re
from functools import lru_cache

from math_verify import LatexExtractionConfig, parse, verify
from sympy import Basic, Integer, nan, zoo  # type: ignore[import-untyped]

__all__ = ["equal", "read"]

_RELATIVE = 1e-5
_PERCENT = 100
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")


def _is_news(record: logging.LogRecord) -> bool:
    # math-verify warns that its own timeouts are off. They are off on purpose: they need signals,
    # which only work in main threads, and do not stop C code. The pool's limit replaces them.
    return not record.getMessage().startswith("Timeout is disabled")


for _name in ("math_verify.parser", "math_verify.grader"):
    logging.getLogger(_name).addFilter(_is_news)


@lru_cache(maxsize=256)  # the gold answer of a group is read once
def read(text: str) -> tuple[object, ...]:
    """What a normalized answer means, as SymPy objects.

    Empty if it cannot be parsed or has no definite value, as a division by zero has not.
    """
    if _INTEGER.fullmatch(text):  # as math-verify reads it, without its parser of a millisecond
        return (Integer(text),)
    if not _balanced(text):
        return ()
    found = parse(
        rf"\boxed{{{text}}}",
        extraction_config=[LatexExtractionConfig(boxed_match_priority=0)],
        fallback_mode="no_fallback",
        parsing_timeout=None,
    )
    return tuple(v for v in found if not (isinstance(v, Basic) and v.has(nan, zoo)))


def equal(gold: tuple[object, ...], answer: tuple[object, ...]) -> bool:
    """Whether two parsed answers are equal.

    Raises:
        Exception: whatever math-verify and SymPy raise on expressions that they cannot compare.
    """
    if not verify(list(gold), list(answer), timeout_seconds=None, raise_on_error=True):
        return False
    a, b = _number(gold[0]), _number(answer[0])
    if a is None or b is None:
        return True
    return any(
        abs(x - y) <= _RELATIVE * max(abs(x), abs(y))
        for x, y in ((a, b), (a * _PERCENT, b), (a, b * _PERCENT))
    )


def _number(value: object) -> Basic | None:
    """The value of an expression without variables, to 15 digits; None for anything else."""
    if not isinstance(value, Basic) or not getattr(value, "is_number", False):
        return None
    number = value.doit().evalf()
    return number if number.is_Float or number.is_Integer else None


def _balanced(text: str) -> bool:
    depth = 0
    escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in "{}":
            depth += 1 if character == "{" else -1
            if depth < 0:
                return False
    return depth == 0 and not escaped

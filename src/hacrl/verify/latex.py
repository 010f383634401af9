r"""Formulas as SymPy expressions, by the parser of math-verify, with capitals kept."""

from __future__ import annotations

import logging
import re
from functools import lru_cache

from latex2sympy2_extended.latex2sympy2 import (
    ConversionConfig,
    NormalizationConfig,
    latex2sympy,
    normalize_latex,
)
from math_verify.grader import should_treat_as_complex
from sympy import Basic, Integer, MatrixBase, nan, zoo  # type: ignore[import-untyped]

__all__ = ["read"]

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_READ_AS = ConversionConfig(lowercase_symbols=False)
_NORMALIZED = NormalizationConfig(
    basic_latex=True,
    units=False,
    malformed_operators=True,
    nits=True,
    boxed="none",
    equations=False,
)


def _is_news(record: logging.LogRecord) -> bool:
    # math-verify warns that its own timeouts are off. They are off on purpose: they need signals,
    # which only work in main threads, and do not stop C code. The pool's limit replaces them.
    return not record.getMessage().startswith("Timeout is disabled")


for _name in ("math_verify.parser", "math_verify.grader"):
    logging.getLogger(_name).addFilter(_is_news)


@lru_cache(maxsize=256)  # the reference answer of a group is read once
def read(text: str) -> Basic | MatrixBase | None:
    """What a normalized formula means.

    None if it cannot be parsed or has no definite value, as a division by zero has not.
    """
    if _INTEGER.fullmatch(text):  # as the parser reads it, without its millisecond
        return Integer(text)
    if not _balanced(text):
        return None
    try:
        expression = latex2sympy(
            normalize_latex(text, config=_NORMALIZED),
            is_real=not should_treat_as_complex(text),
            convert_degrees=False,
            normalization_config=None,
            conversion_config=_READ_AS,
        )
    except (MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - the parser raises anything on what it cannot read
        return None
    if not isinstance(expression, Basic | MatrixBase) or (
        isinstance(expression, Basic) and expression.has(nan, zoo)
    ):
        return None
    return expression


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

"""YAML as recipes are written in it."""

from __future__ import annotations

from typing import Any

import yaml

from hacrl.config.loader import Loader
from hacrl.errors import UserError

__all__ = ["parse_yaml", "short"]

_LONGEST = 160
"""Characters of a value that a message repeats."""


def parse_yaml(text: str, place: str, *, comments: bool = True) -> Any:
    """The value of a YAML text. `place` begins the error message.

    Args:
        comments: whether the text may have any.
    """
    try:
        loader = Loader(text)
        try:
            value = loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise UserError(f"{place}: {line}{short(error.problem or str(error))}") from error
    # The library passes on what Python says of an impossible number.
    except (yaml.YAMLError, ValueError) as error:
        raise UserError(f"{place}: {short(str(error))}") from error
    except RecursionError as error:
        raise UserError(f"{place}: is nested too deeply") from error
    if loader.comments and not comments:
        raise UserError(
            f"{place}: {short(loader.comments[0][2])} is a comment, since a # begins one; quote "
            f"the value twice, as in key='\"####\"'"
        )
    return value


def short(text: str, longest: int = _LONGEST) -> str:
    """A text from outside as part of a message: one line, not too long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"

"""YAML as recipes are written in it."""

from __future__ import annotations

import re
from typing import Any

import yaml

from hacrl.errors import UserError

__all__ = ["parse_yaml", "short"]

_LONGEST = 160
"""Characters of a value that a message repeats."""


def parse_yaml(text: str, place: str) -> Any:
    """The value of a YAML text. `place` begins the error message."""
    try:
        return yaml.load(text, Loader=_UniqueKeyLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise UserError(f"{place}: {line}{short(error.problem or str(error))}") from error
    # The library passes on what Python says of an impossible date or number.
    except (yaml.YAMLError, ValueError) as error:
        raise UserError(f"{place}: {short(str(error))}") from error
    except RecursionError as error:
        raise UserError(f"{place}: is nested too deeply") from error


def short(text: str) -> str:
    """A text from outside as part of a message: one line, not too long."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML that refuses a key given twice and reads 1e-4 as a number."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _refused("a key must be a plain word", key)
            if key.value in seen:
                raise _refused(f"key {key.value} is given twice", key)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _refused(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


# YAML 1.1 wants a dot in a float; people write 1e-4.
_UniqueKeyLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)

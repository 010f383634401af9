"""YAML as people write it: what they see is what is read.

YAML 1.1, which the library reads, takes more for something else than people expect: `no` for
false, `010` for 8, `1:30` for 90, a date for a date, and what follows a `#` for a comment. Here a
word is a word, a date or `1:30` is a text and `010` is 10, as in YAML 1.2, and what looks like a
value that has become a comment is refused.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import yaml

__all__ = ["Dumper", "Loader", "Word"]

_SWITCHES = {"on": True, "yes": True, "off": False, "no": False}
_HASHES = "###"
"""No comment after a value begins with this many."""
_LINE_ENDS = "\0\r\n\x85\u2028\u2029"
_TEXT = "tag:yaml.org,2002:str"
_DIGITS = list("-+.0123456789")


class Word(str):
    """`on`, `off`, `yes` or `no` without quotes: a text where one is wanted, else true or false."""

    @property
    def switch(self) -> bool:
        """What YAML 1.1 means by it."""
        return _SWITCHES[self.lower()]


class Loader(yaml.SafeLoader):
    """Keys are texts whatever they look like; none may be given twice, or lose its value to a
    comment."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.comments: list[tuple[int, int, str]] = []
        """Position, line and text of every comment so far, but for those behind `|` and `>`."""
        self._text = text

    def scan_to_next_token(self) -> None:
        """Skip white space and comments; the library does not keep the comments."""
        if self.index == 0 and self.peek() == "\ufeff":
            self.forward()
        while True:
            while self.peek() == " ":
                self.forward()
            if self.peek() == "#":
                self._skip_comment()
            if not self.scan_line_break():  # type: ignore[no-untyped-call]
                return
            if not self.flow_level:
                self.allow_simple_key = True

    def _skip_comment(self) -> None:
        mark = self.get_mark()
        while self.peek() not in _LINE_ENDS:
            self.forward()
        comment = self._text[mark.index : self.index]
        self.comments.append((mark.index, mark.line, comment))
        if self.flow_level and comment.startswith(_HASHES):
            raise _refused(f"{_begins(comment)}; quote it", mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _refused("a key must be a plain word", key.start_mark)
            if key.value in seen:
                raise _refused(f"key {key.value} is given twice", key.start_mark)
            seen.add(key.value)
            self._check_value(value, key.value, node.start_mark.column)
        self.flatten_mapping(node)
        return {key.value: self.construct_object(value, deep=deep) for key, value in node.value}

    def construct_sequence(self, node: yaml.SequenceNode, deep: bool = False) -> list[Any]:
        for number, value in enumerate(node.value):
            self._check_value(value, f"item {number + 1}", node.start_mark.column)
        return super().construct_sequence(node, deep)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> str:
        """Halves of one character that are written one after the other, as in JSON, are joined."""
        value: str = super().construct_scalar(node)
        try:
            return value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            raise _refused(
                "holds half of a character (a lone surrogate)", node.start_mark
            ) from error

    def construct_word(self, node: yaml.ScalarNode) -> Word:
        """See `Word`."""
        return Word(node.value)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """A whole number. Zeros in front of a decimal one mean nothing."""
        digits = node.value.replace("_", "")
        return int(digits, 0 if re.search("[xob]", digits) else 10)

    def _check_value(self, value: yaml.Node, name: str, column: int) -> None:
        """Refuse a value that a comment has taken the place of, or cut short.

        Args:
            column: of the keys or items around it.
        """
        if not isinstance(value, yaml.ScalarNode) or value.style is not None:
            return
        if value.value and value.tag != _TEXT:
            return
        end = value.end_mark
        first = bisect_left(self.comments, (end.index,))
        if first == len(self.comments):
            return
        position, line, comment = self.comments[first]
        if value.value:
            if line == end.line and comment.startswith(_HASHES):
                raise _refused(f"{name}: {_begins(comment)}; quote the whole value", end)
            return
        between = self._text[end.index : position]
        deeper = position - (self._text.rfind("\n", 0, position) + 1) > column
        below = not between.strip() and deeper and comment.startswith(_HASHES)
        if line == end.line or below:
            raise _refused(
                f"{name} has no value: {_begins(comment)}; put it into quotes, or write null", end
            )


class Dumper(yaml.SafeDumper):
    """Quotes every text that `Loader` would take for something else."""


def _begins(comment: str) -> str:
    return f"{comment[:40]} is a comment, since a # begins one"


def _refused(problem: str, mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, mark)


def _resolve(tag: str, pattern: str, first: Sequence[str]) -> None:
    regular = re.compile(rf"^(?:{pattern})$")
    for kind in (Loader, Dumper):
        kind.add_implicit_resolver(tag, regular, first)


Loader.yaml_implicit_resolvers = {}
_resolve("!word", "on|On|ON|off|Off|OFF|yes|Yes|YES|no|No|NO", list("oOyYnN"))
_resolve("tag:yaml.org,2002:bool", "true|True|TRUE|false|False|FALSE", list("tTfF"))
_resolve("tag:yaml.org,2002:null", "~|null|Null|NULL|", ["~", "n", "N", ""])
_resolve("tag:yaml.org,2002:merge", "<<", ["<"])
_resolve(
    "tag:yaml.org,2002:int",
    "[-+]?(?:[0-9][0-9_]*|0x[0-9a-fA-F_]+|0o[0-7_]+|0b[01_]+)",
    _DIGITS,
)
_resolve(  # YAML 1.1 wants a dot and a sign in the exponent; people write 1e-4
    "tag:yaml.org,2002:float",
    r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*[eE][-+]?[0-9]+|[0-9][0-9_]*\.[0-9_]*"
    r"|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)",
    _DIGITS,
)
Loader.add_constructor("!word", Loader.construct_word)
Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)

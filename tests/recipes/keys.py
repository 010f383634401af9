"""Every key of the recipe's schema, and the extremes of its values."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hacrl.config import Recipe

__all__ = ["Key", "all_keys", "extremes", "with_value"]

Node = Mapping[str, Any]

TEXTS = ("", " ", "x", "no", "x" * 5000, "é\u2028😀", "../up", "a\0b", "\ud800", "{question}")


@dataclass(frozen=True)
class Key:
    """A key of the schema.

    Args:
        owner: the model that has it.
        path: from the recipe; `*` stands for any name or item, and `type=x` after a section says
            that it must be of that type.
        node: its JSON schema.
    """

    owner: str
    path: tuple[str, ...]
    node: Node = field(compare=False, repr=False)

    @property
    def name(self) -> str:
        return f"{self.owner}.{self.path[-1]}"

    def __str__(self) -> str:
        return ".".join(self.path)


@cache
def all_keys() -> tuple[Key, ...]:
    """Each key of each model once, where the recipe first has it."""
    schema = Recipe.model_json_schema()
    seen: set[str] = set()

    def resolved(node: Node) -> Node:
        return schema["$defs"][node["$ref"].split("/")[-1]] if "$ref" in node else node

    def walk(node: Node, path: tuple[str, ...]) -> Iterator[Key]:
        for name, child in node["properties"].items():
            yield Key(node["title"], (*path, name), child)
            yield from inside(child, (*path, name))

    def inside(node: Node, path: tuple[str, ...]) -> Iterator[Key]:
        node = resolved(node)
        if "properties" in node and node["title"] not in seen:
            seen.add(node["title"])
            yield from walk(node, path)
        for branch in ("anyOf", "oneOf"):
            options = [resolved(option) for option in node.get(branch, ())]
            models = [option for option in options if "properties" in option]
            for option in options:
                tag = _tag(option)
                several = len(models) > 1 and tag is not None
                yield from inside(option, (*path, f"type={tag}") if several else path)
        for child in (*node.get("patternProperties", {}).values(), node.get("items")):
            if isinstance(child, dict):
                yield from inside(child, (*path, "*"))
        if isinstance(node.get("additionalProperties"), dict):
            yield from inside(node["additionalProperties"], (*path, "*"))

    seen.add(schema["title"])
    return tuple(walk(schema, ()))


def _tag(option: Node) -> str | None:
    """What a section is told by from others that could be in its place."""
    tags = (option.get("properties", {}).get(key, {}).get("const") for key in ("type", "from"))
    return next((tag for tag in tags if tag is not None), None)


def extremes(node: Node) -> list[Any]:
    """Values at, around and far beyond the bounds of a key, and of other types."""
    found: list[Any] = [None, True, {}, [], "x"]
    for option in (node, *node.get("anyOf", ()), *node.get("oneOf", ())):
        if "enum" in option:
            found += option["enum"]
        if "const" in option:
            found.append(option["const"])
        match option.get("type"):
            case "integer":
                low, high = option.get("minimum", 0), option.get("maximum", 2**31)
                found += [low - 1, low, low + 1, 7, high, high + 1, 10**30, -1, 0.5, 1e308]
            case "number":
                low = option.get("minimum", option.get("exclusiveMinimum", 0.0))
                high = option.get("maximum", option.get("exclusiveMaximum", 1e9))
                beyond = math.nextafter(high, math.inf)
                found += [low, math.nextafter(low, math.inf), low - 1, high, beyond, 0.5, 0.0]
                found += [1e308, -1e308, 1e-300, 5e-324, math.nan, math.inf, 10**400]
            case "string":
                found += TEXTS
            case "boolean":
                found += [False, "off", "yes"]
            case "array":
                kinds = option.get("prefixItems") or [option.get("items", {})] * 2
                found += [list(pair) for pair in zip(*map(extremes, kinds), strict=False)]
            case "object":
                inner = option.get("additionalProperties")
                values = extremes(inner) if isinstance(inner, dict) else [1]
                found += [{name: value} for name in ("x", "kim", "") for value in values[:20]]
    return found


def with_value(
    base: Mapping[str, Any], sections: Mapping[str, Any], key: Key, value: object
) -> dict[str, Any]:
    """A recipe with a value at a key.

    Args:
        sections: what a section is where the base has none, by its name, or `name/type`.
    """
    holder: Any = {"": copy.deepcopy(dict(base))}
    raw, at, named = holder[""], "", ""
    *parents, last = key.path
    for part in parents:
        node = holder[at]
        if part.startswith("type="):
            holder[at] = copy.deepcopy(sections[f"{named}/{part.removeprefix('type=')}"])
        elif part == "*":
            holder, at = node, 0 if isinstance(node, list) else next(iter(node))
        else:
            if not node.get(part):
                node[part] = copy.deepcopy(sections.get(part, {}))
            holder, at, named = node, part, part
    holder[at][last] = value
    return dict(raw)

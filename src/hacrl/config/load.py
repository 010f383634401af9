"""Reading a recipe: YAML, `key=value` overrides, the named method, then the schema."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from hacrl.algorithm.methods import method_settings
from hacrl.config.explain import explain
from hacrl.config.loader import Dumper
from hacrl.config.schema import Recipe
from hacrl.config.text import parse_yaml, short
from hacrl.errors import UserError

__all__ = ["load_recipe", "recipe_from_dict", "recipe_to_yaml"]

_MISSING = object()
_NAMED = ("fleet", "sampler")
"""Sections for which a name alone stands for one of that type."""


def load_recipe(path: Path | str, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe file and apply `dotted.key=value` overrides (values are YAML).

    Raises:
        UserError: missing file, malformed YAML, duplicate, unknown or invalid key, an override
            given twice, or an override of `method` that the file's own values would undo.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"recipe {path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UserError(f"recipe {path}: is not UTF-8 text ({error.reason})") from error
    raw = parse_yaml(text, f"recipe {path}")
    if not isinstance(raw, dict):
        raise UserError(f"recipe {path}: must be a mapping of keys, such as `steps: 60`")
    return recipe_from_dict(raw, overrides, origin=f"recipe {path}")


def recipe_from_dict(
    raw: Mapping[str, Any], overrides: Sequence[str] = (), origin: str = "recipe"
) -> Recipe:
    """Build a recipe from nested mappings, as `load_recipe` does from a file."""
    try:
        tree = _copy(raw)
    except RecursionError as error:
        raise UserError(f"{origin}: is nested too deeply, or contains itself") from error
    changes = _parse_overrides(overrides)
    if "method" in changes:
        _switch_method(tree, changes, origin)
    for key, value in changes.items():
        _put(tree, key, value)
    _check_texts(tree, origin, "")
    for key, value in method_settings(_method(tree)).items():
        section = tree.get(key.partition(".")[0], {})
        # A section that is no mapping is left for the schema to complain about.
        if _get(tree, key) is _MISSING and isinstance(section, dict):
            _put(tree, key, value)
    try:
        return Recipe.model_validate(tree)
    except ValidationError as error:
        raise UserError(f"{origin}: {explain(error)}") from error


def recipe_to_yaml(recipe: Recipe) -> str:
    """The resolved recipe, with every default spelt out."""
    content = recipe.model_dump(mode="json")
    return yaml.dump(content, Dumper=Dumper, sort_keys=False, allow_unicode=True)


def _parse_overrides(overrides: Sequence[str]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for item in overrides:
        key, equals, value = item.partition("=")
        key = key.strip()
        if not equals or not all(key.split(".")):
            raise UserError(f"override {short(repr(item))}: write it as dotted.key=value")
        if key in changes:
            raise UserError(f"override {key}: given twice; keep one")
        changes[key] = parse_yaml(value, f"override {short(repr(item))}", comments=False)
    for key in changes:
        for other in changes:
            if other.startswith(key + "."):
                raise UserError(f"override {key}: contradicts override {other}; keep one")
    return changes


def _switch_method(tree: dict[str, Any], changes: Mapping[str, Any], origin: str) -> None:
    """Let `method=NAME` on the command line win over what the file took from its own method.

    A resolved recipe spells out every switch, so a new method would change nothing. Switches that
    merely repeat what the file's method means without them are dropped; others that contradict the
    new one are refused.
    """
    old, new = _method(tree), str(changes["method"])
    before, now = method_settings(old), method_settings(new)
    for key in {**before, **now}:
        if _get(tree, key) == before.get(key, _default(key)):
            _drop(tree, key)
    for key, value in now.items():
        present = _get(tree, key)
        if present is not _MISSING and present != value and key not in changes:
            raise UserError(
                f"override method={new}: it means {key}={value}, but {origin} says "
                f"{short(repr(present))}; say which by adding {key}=…"
            )


def _method(tree: Mapping[str, Any]) -> str:
    return str(tree.get("method", _default("method")))


def _default(key: str) -> Any:
    """The schema's default of a switch."""
    top, *rest = key.split(".")
    return functools.reduce(getattr, rest, Recipe.model_fields[top].default)


def _get(tree: Mapping[str, Any], key: str) -> Any:
    node: Any = tree
    for part in key.split("."):
        if not isinstance(node, Mapping) or part not in node:
            return _MISSING
        node = node[part]
    return node


def _put(tree: dict[str, Any], key: str, value: Any) -> None:
    *parents, last = key.split(".")
    node = tree
    for i, part in enumerate(parents):
        child = node.get(part)
        if child is None:
            child = node[part] = {}
        if part in _NAMED and isinstance(child, str):
            child = node[part] = {"type": child}
        if not isinstance(child, dict):
            raise UserError(
                f"override {key}: {'.'.join(parents[: i + 1])} is {short(repr(child))}, "
                "not a group of keys"
            )
        node = child
    node[last] = value


def _drop(tree: dict[str, Any], key: str) -> None:
    parent, _, last = key.rpartition(".")
    node = _get(tree, parent) if parent else tree
    del node[last]


def _check_texts(value: Any, origin: str, place: str) -> None:
    """Refuse texts that no file, template or prompt can hold."""
    if isinstance(value, str):
        odd = "the character of code 0" if "\0" in value else ""
        try:
            value.encode()
        except UnicodeEncodeError:
            odd = "half of a character (a lone surrogate)"
        if odd:
            name = place or short(repr(value))
            raise UserError(f"{origin}: {short(name)}: holds {odd}, which is no text")
    elif isinstance(value, Mapping):
        for key, child in value.items():
            _check_texts(key, origin, "")
            _check_texts(child, origin, f"{place}.{key}".removeprefix("."))
    elif isinstance(value, list | tuple):
        for number, child in enumerate(value):
            _check_texts(child, origin, f"{place}.{number}")


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_copy(child) for child in value]
    return value

"""Reading a recipe: YAML, `key=value` overrides, the named method, then the schema."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from hacrl.config.methods import METHODS
from hacrl.config.schema import Recipe
from hacrl.errors import UserError

__all__ = ["load_recipe", "recipe_from_dict", "recipe_to_yaml"]

_MISSING = object()
_LONGEST = 160
"""Characters of a value that a message repeats."""


def load_recipe(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe file and apply `dotted.key=value` overrides (values are YAML).

    Raises:
        UserError: missing file, malformed YAML, duplicate, unknown or invalid key, an override
            given twice, or an override of `method` that the file's own values would undo.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"recipe {path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UserError(f"recipe {path}: is not UTF-8 text ({error.reason})") from error
    raw = _parse(text, f"recipe {path}")
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
    for key, value in METHODS.get(_method(tree), {}).items():
        section = tree.get(key.partition(".")[0], {})
        # A section that is no mapping is left for the schema to complain about.
        if _get(tree, key) is _MISSING and isinstance(section, dict):
            _put(tree, key, value)
    try:
        return Recipe.model_validate(tree)
    except ValidationError as error:
        raise UserError(f"{origin}: {_explain(error)}") from error


def recipe_to_yaml(recipe: Recipe) -> str:
    """The resolved recipe, with every default spelt out."""
    return yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _parse_overrides(overrides: Sequence[str]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for item in overrides:
        key, equals, value = item.partition("=")
        key = key.strip()
        if not equals or not all(key.split(".")):
            raise UserError(f"override {_short(repr(item))}: write it as dotted.key=value")
        if key in changes:
            raise UserError(f"override {key}: given twice; keep one")
        changes[key] = _parse(value, f"override {_short(repr(item))}")
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
    for key in METHODS.get(old, {}) | METHODS.get(new, {}):
        if _get(tree, key) == METHODS.get(old, {}).get(key, _default(key)):
            _drop(tree, key)
    for key, value in METHODS.get(new, {}).items():
        present = _get(tree, key)
        if present is not _MISSING and present != value and key not in changes:
            raise UserError(
                f"override method={new}: it means {key}={value}, but {origin} says "
                f"{_short(repr(present))}; say which by adding {key}=…"
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
        if not isinstance(child, dict):
            raise UserError(
                f"override {key}: {'.'.join(parents[: i + 1])} is {_short(repr(child))}, "
                "not a group of keys"
            )
        node = child
    node[last] = value


def _drop(tree: dict[str, Any], key: str) -> None:
    parent, _, last = key.rpartition(".")
    node = _get(tree, parent) if parent else tree
    del node[last]


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(child) for key, child in value.items()}
    return value


def _explain(error: ValidationError) -> str:
    """The first problem in one line, with the nearest known key for an unknown one."""
    errors = error.errors(include_url=False)
    # A misspelt key also leaves the right one missing, so an unknown key is the better news. Of a
    # union's errors, the deepest belongs to the member that was meant.
    first = max(errors, key=lambda e: (e["type"] == "extra_forbidden", len(e["loc"])))
    more = error.error_count() - 1
    path = [str(part) for part in first["loc"] if part != "[key]"]
    key = _short(".".join(_without_tags(path)))
    if first["type"] == "extra_forbidden":
        message = f"unknown key {key}{_nearest(path)}"
    elif first["type"] == "missing":
        message = f"missing key {key}"
    elif first["type"] == "value_error":
        detail = str(first["ctx"]["error"])
        message = f"{key}: {detail}" if key else detail
    else:
        wanted = first["msg"][0].lower() + first["msg"][1:]
        message = f"{key}: {wanted}, got {_short(repr(first['input']))}"
    return message + (f" (and {more} more)" if more else "")


def _without_tags(path: Sequence[str]) -> list[str]:
    """Drop what pydantic adds to a location: the tag of the chosen member of a union."""
    tags = {"jsonl", "reasoning_gym", "math", "exact", "literal['everyone','nobody']"}
    return [part for part in path if part not in tags and not part.startswith("dict[")]


def _nearest(path: Sequence[str]) -> str:
    known = _fields_at(Recipe, path[:-1])
    close = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known here: {', '.join(sorted(known))}" if known else ""


def _fields_at(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    """Names of the keys that are known at a location of pydantic's error."""
    if not path:
        return list(model.model_fields)
    field = model.model_fields.get(path[0])
    if field is None:
        return []
    models = _models_in(field.annotation)
    rest = path[1:]
    if len(models) > 1 and rest:  # a tagged union: the location names the member
        models = [m for m in models if m.model_fields["type"].default == rest[0]]
        rest = rest[1:]
    elif models and rest and rest[0] not in models[0].model_fields:  # a mapping: skip its key
        rest = rest[1:]
    return _fields_at(models[0], rest) if models else []


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def _parse(text: str, place: str) -> Any:
    """The value of a YAML text. `place` begins the error message."""
    try:
        return yaml.load(text, Loader=_UniqueKeyLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise UserError(f"{place}: {line}{_short(error.problem or str(error))}") from error
    # The library passes on what Python says of an impossible date or number.
    except (yaml.YAMLError, ValueError) as error:
        raise UserError(f"{place}: {_short(str(error))}") from error
    except RecursionError as error:
        raise UserError(f"{place}: is nested too deeply") from error


def _short(text: str) -> str:
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

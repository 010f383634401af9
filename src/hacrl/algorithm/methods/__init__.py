"""The methods that a recipe can name: one file each, found by its name.

A file holds `SETTINGS`, the keys of a recipe that define the method (a recipe's own values take
precedence), and, where the sections `advantage`, `ratio` and `clip` do not say all of it, `make`,
which takes those sections as mappings and returns an `Algorithm`. The files import torch in `make`
alone, so that a recipe can be read without it.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module

__all__ = ["method_label", "method_names", "method_settings"]


def method_names() -> tuple[str, ...]:
    """All methods, in alphabetical order."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def method_settings(name: str) -> Mapping[str, object]:
    """The keys that define a method, with their values; none for a name that is not known."""
    if name not in method_names():
        return {}
    settings: Mapping[str, object] = import_module(f"{__name__}.{name}").SETTINGS
    return settings


def method_label(method: object) -> str:
    """What people call the method of a recipe file: its name, or that of the user's function."""
    if isinstance(method, Mapping):
        method = method.get("function")
    return method if isinstance(method, str) else ""

"""Functions that a recipe names as `module:function`."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from hacrl.errors import UserError

__all__ = ["resolve"]


def resolve(name: str) -> Callable[..., Any]:
    """The function that `module:function` names. Modules in the current folder are found as well.

    Raises:
        UserError: there is no such module or function, or importing the module fails.
    """
    module_name, _, path = name.partition(":")
    if os.getcwd() not in sys.path:  # a console script starts without it
        sys.path.append(os.getcwd())
    try:
        target: Any = importlib.import_module(module_name)
    # A user's module may raise anything.
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UserError(f"module {module_name} cannot be imported ({reason})") from error
    for part in path.split("."):
        if not hasattr(target, part):
            raise UserError(f"module {module_name} has no {path}")
        target = getattr(target, part)
    if not callable(target):
        raise UserError(f"{name} is not a function")
    function: Callable[..., Any] = target
    return function

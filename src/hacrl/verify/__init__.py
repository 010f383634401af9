"""Verifiers and the pool of worker processes that runs them under hard limits.

Every worker process imports this package as it starts; what makes verifiers of a recipe needs the
recipe's schema, and is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hacrl.verify.base import Verifier
from hacrl.verify.choice import Choice
from hacrl.verify.code import Code
from hacrl.verify.command import Command
from hacrl.verify.exact import Exact
from hacrl.verify.function import Function
from hacrl.verify.gym import ReasoningGym
from hacrl.verify.math import Math
from hacrl.verify.pool import VerifierPool
from hacrl.verify.total import Total

if TYPE_CHECKING:
    from hacrl.verify.making import make_pool, make_verifier, make_verifiers

__all__ = [
    "Choice",
    "Code",
    "Command",
    "Exact",
    "Function",
    "Math",
    "ReasoningGym",
    "Total",
    "Verifier",
    "VerifierPool",
    "make_pool",
    "make_verifier",
    "make_verifiers",
]


def __getattr__(name: str) -> Any:
    if name.startswith("make_") and name in __all__:
        return getattr(import_module("hacrl.verify.making"), name)
    raise AttributeError(f"module 'hacrl.verify' has no attribute {name!r}")

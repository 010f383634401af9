"""Verifiers and the pool of worker processes that runs them under hard limits."""

from __future__ import annotations

from hacrl.verify.base import Verifier
from hacrl.verify.choice import Choice
from hacrl.verify.code import Code
from hacrl.verify.command import Command
from hacrl.verify.exact import Exact
from hacrl.verify.function import Function
from hacrl.verify.gym import ReasoningGym
from hacrl.verify.making import make_pool, make_verifier, make_verifiers
from hacrl.verify.math import Math
from hacrl.verify.pool import VerifierPool
from hacrl.verify.total import Total

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

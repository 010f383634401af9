"""Verifiers and the pool of worker processes that runs them under hard limits."""

from __future__ import annotations

from hacrl.config.schema import ExactVerifier, MathVerifier, Task
from hacrl.verify.base import Verifier
from hacrl.verify.exact import Exact
from hacrl.verify.math import Math
from hacrl.verify.pool import VerifierPool

__all__ = ["Exact", "Math", "Verifier", "VerifierPool", "make_verifier"]


def make_verifier(spec: MathVerifier | ExactVerifier, task: Task) -> Verifier:
    """The verifier that a recipe describes, for the prompts of one of its tasks."""
    match spec:
        case MathVerifier():
            return Math(spec.marker, spec.last_number, spec.correct, spec.wrong)
        case ExactVerifier():
            return Exact(spec.marker, spec.correct, spec.wrong)

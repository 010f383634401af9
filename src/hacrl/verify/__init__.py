"""Verifiers and the pool of worker processes that runs them under hard limits."""

from __future__ import annotations

from collections.abc import Mapping

from hacrl.config.tasks import Task
from hacrl.config.verifiers import ExactVerifier, MathVerifier, VerifierSpec
from hacrl.verify.base import Verifier
from hacrl.verify.exact import Exact
from hacrl.verify.math import Math
from hacrl.verify.pool import VerifierPool

__all__ = ["Exact", "Math", "Verifier", "VerifierPool", "make_verifier", "make_verifiers"]


def make_verifiers(tasks: Mapping[str, Task]) -> dict[str, Verifier]:
    """The verifier of each task of a recipe, by the task's name."""
    return {name: make_verifier(task.verifier) for name, task in tasks.items()}


def make_verifier(spec: VerifierSpec) -> Verifier:
    """The verifier that a recipe describes."""
    match spec:
        case MathVerifier():
            return Math(spec.marker, spec.last_number, spec.correct, spec.wrong)
        case ExactVerifier():
            return Exact(spec.marker, spec.correct, spec.wrong)

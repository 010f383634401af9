"""Verifiers as a recipe describes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hacrl.config.rollouts import Verification
from hacrl.config.tasks import Task
from hacrl.config.verifiers import (
    ChoiceVerifier,
    CodeVerifier,
    CommandVerifier,
    ExactVerifier,
    MathVerifier,
    PythonVerifier,
    ReasoningGymVerifier,
    SumVerifier,
    VerifierSpec,
)
from hacrl.errors import UserError
from hacrl.verify.any_of import AnyOf
from hacrl.verify.base import Verifier
from hacrl.verify.choice import Choice
from hacrl.verify.code import Code
from hacrl.verify.command import Command
from hacrl.verify.exact import Exact
from hacrl.verify.function import Function, resolve
from hacrl.verify.gym import ReasoningGym, check_name
from hacrl.verify.math import Math
from hacrl.verify.pool import VerifierPool
from hacrl.verify.total import Total

__all__ = ["make_pool", "make_verifier", "make_verifiers"]

_GIB = 2**30


def make_pool(tasks: Mapping[str, Task], rule: Verification) -> VerifierPool:
    """A pool with the verifiers of a recipe's tasks, under the recipe's limits.

    Raises:
        UserError: see `make_verifiers`.
    """
    return VerifierPool(
        make_verifiers(tasks),
        rule.workers,
        rule.seconds,
        memory=int(rule.memory * _GIB),
        max_chars=rule.max_chars,
        max_errors=rule.max_errors,
    )


def make_verifiers(tasks: Mapping[str, Task]) -> dict[str, Verifier]:
    """The verifier of each task of a recipe, by the task's name.

    Raises:
        UserError: a function, a program or a generator that a verifier names is not there. The
            message begins with the key.
    """
    made = {}
    for name, task in tasks.items():
        with _at(f"tasks.{name}.verifier."):
            verifier = make_verifier(task.verifier)
        several = getattr(task.source, "answers", None) == "any"
        made[name] = AnyOf(verifier) if several else verifier
    return made


def make_verifier(spec: VerifierSpec) -> Verifier:
    """The verifier that a recipe describes. What it names outside the recipe is looked up.

    Raises:
        UserError: it is not there. The message begins with the key inside the description.
    """
    match spec:
        case MathVerifier():
            return Math(spec.marker, spec.last_number, spec.correct, spec.wrong)
        case ExactVerifier():
            return Exact(spec.marker, spec.correct, spec.wrong)
        case ChoiceVerifier():
            return Choice(spec.marker, spec.options, spec.correct, spec.wrong)
        case CodeVerifier():
            return Code(spec.seconds, int(spec.memory * _GIB), spec.correct, spec.wrong)
        case ReasoningGymVerifier():
            return _gym(spec)
        case CommandVerifier():
            return _command(spec)
        case PythonVerifier():
            return _function(spec)
        case SumVerifier():
            return _total(spec)


def _gym(spec: ReasoningGymVerifier) -> Verifier:
    if spec.name is not None:
        with _at("name: "):
            check_name(spec.name)
    return ReasoningGym(
        spec.name, spec.marker, spec.threshold, spec.partial, spec.correct, spec.wrong
    )


def _command(spec: CommandVerifier) -> Verifier:
    command = Command(
        argv=tuple(spec.argv),
        judged_by=spec.judged_by,
        threshold=spec.threshold,
        lowest=spec.lowest,
        seconds=spec.seconds,
        memory=int(spec.memory * _GIB),
        environment=tuple(spec.environment),
        correct=spec.correct,
        wrong=spec.wrong,
    )
    with _at("argv: "):
        command.check()
    return command


def _function(spec: PythonVerifier) -> Verifier:
    with _at("function: "):
        resolve(spec.function)
    return Function(
        spec.function, spec.batch, spec.threshold, spec.lowest, spec.correct, spec.wrong
    )


def _total(spec: SumVerifier) -> Verifier:
    parts = []
    for number, part in enumerate(spec.parts):
        with _at(f"parts.{number}.verifier."):
            parts.append(make_verifier(part.verifier))
    return Total(tuple(parts), tuple(part.weight for part in spec.parts))


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Put the key in front of an error's message."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{place}{error}") from error

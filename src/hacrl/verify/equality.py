r"""Equality of formulas, by SymPy. Slow and unbounded, so imported in workers only.

Formulas are compared by math-verify where neither side is an equation, an inequality or a single
letter.

Tolerance: math-verify takes numbers for equal if one is a decimal and both agree when rounded to
six decimal places, so 1/3 and 0.333333 are equal and 1/3 and 0.33 are not. That alone would make
all tiny numbers equal, hence equal numbers must also agree to one part in 100,000. `50\%` is
accepted for 50 and for 1/2.
"""

from __future__ import annotations

from latex2sympy2_extended.logic import And
from math_verify import verify
from sympy import (  # type: ignore[import-untyped]
    Basic,
    Eq,
    Expr,
    FiniteSet,
    Float,
    Integer,
    Interval,
    MatrixBase,
    Rational,
    S,
    Set,
    Symbol,
    Tuple,
    exp,
    fraction,
    simplify,
    together,
)
from sympy.core.function import AppliedUndef, Derivative  # type: ignore[import-untyped]
from sympy.core.relational import (  # type: ignore[import-untyped]
    GreaterThan,
    LessThan,
    Relational,
    StrictGreaterThan,
    StrictLessThan,
    Unequality,
)

__all__ = ["equal", "value_of"]

_RELATIVE = 1e-5
_PERCENT = 100
_GREATER = (GreaterThan, StrictGreaterThan)
_STRICT = (StrictLessThan, StrictGreaterThan)
_POINTS = tuple(
    Rational(n, d) for n, d in ((7, 5), (-7, 5), (13, 37), (-13, 37), (311, 100), (-271, 100))
)
"""Values of variables at which two formulas are compared, no two of them related."""
_DIGITS = 30


def equal(gold: Basic | MatrixBase, answer: Basic | MatrixBase) -> bool:
    """Whether two formulas are equal.

    Raises:
        Exception: whatever math-verify and SymPy raise on expressions that they cannot compare.
    """
    if _differ_in_capitals(gold, answer):
        return False
    if _is_relation(gold) and _is_relation(answer):
        return _same_relations(_relations(gold), _relations(answer))
    if isinstance(answer, Eq | And) and _is_equation(answer) and not _is_relation(gold):
        value = _value_of_chain(answer)
        return value is not None and equal(gold, value)
    if _is_relation(gold) or _is_relation(answer):
        return _same_sets(gold, answer)
    if isinstance(gold, Symbol) or isinstance(answer, Symbol):
        return _same_name(gold, answer)
    if _has_unknown_derivative(gold) or _has_unknown_derivative(answer):
        return bool(gold == answer)
    if isinstance(gold, FiniteSet) or isinstance(answer, FiniteSet):
        listed, others = _listed(gold), _listed(answer)
        if len(listed) != len(others):
            return False
        if any(_is_relation(part) for part in (*listed, *others)):
            return _matched(listed, others)
    if _verified(gold, answer):
        return _close(gold, answer)
    return _same_function(gold, answer)


def value_of(formula: Basic | MatrixBase) -> float | None:
    """The value of a formula without variables as a float; None for anything else."""
    number = _number(formula)
    return None if number is None else float(number)


def _verified(gold: Basic | MatrixBase, answer: Basic | MatrixBase) -> bool:
    return bool(verify([gold], [answer], timeout_seconds=None, raise_on_error=True))


def _close(gold: Basic | MatrixBase, answer: Basic | MatrixBase) -> bool:
    a, b = _number(gold), _number(answer)
    if a is None or b is None:
        return True
    return any(
        abs(x - y) <= _RELATIVE * max(abs(x), abs(y))
        for x, y in ((a, b), (a * _PERCENT, b), (a, b * _PERCENT))
    )


def _number(value: object) -> Basic | None:
    """The value of an expression without variables, to 15 digits; None for anything else."""
    if not isinstance(value, Basic) or not getattr(value, "is_number", False):
        return None
    number = value.doit().evalf()
    return number if number.is_Float or number.is_Integer else None


def _same_name(gold: Basic | MatrixBase, answer: Basic | MatrixBase) -> bool:
    if isinstance(gold, Symbol) and isinstance(answer, Symbol):
        return str(gold.name) == str(answer.name)
    if not isinstance(gold, Expr) or not isinstance(answer, Expr):
        return False
    return bool(simplify(gold - answer) == 0)


def _same_function(gold: object, answer: object) -> bool:
    r"""Whether two expressions have the same real value wherever both have one.

    SymPy does not simplify `\sqrt{1/n} - 1/\sqrt{n}` to zero, since it is none for negative n. It
    is at all points where it is real, and so the two count as equal.
    """
    if not isinstance(gold, Expr) or not isinstance(answer, Expr):
        return False
    names = sorted(gold.free_symbols, key=str)
    if not names or names != sorted(answer.free_symbols, key=str) or gold.has(Derivative):
        return False
    compared = 0
    for turn in range(len(_POINTS)):
        point = {name: _POINTS[(turn + i) % len(_POINTS)] * (i + 1) for i, name in enumerate(names)}
        a, b = (side.subs(point).doit().evalf(_DIGITS) for side in (gold, answer))
        if not (isinstance(a, Float | Integer) and isinstance(b, Float | Integer)):
            if isinstance(a, Float | Integer) != isinstance(b, Float | Integer):
                return False
            continue
        if abs(a - b) > max(abs(a), abs(b)) * Float(10) ** (10 - _DIGITS):
            return False
        compared += 1
    return compared >= 2


def _has_unknown_derivative(value: Basic | MatrixBase) -> bool:
    r"""Whether there is a derivative of a name, such as `\frac{dy}{dx}`. SymPy takes it for 0."""
    return any(isinstance(derivative.expr, Symbol) for derivative in value.atoms(Derivative))


def _is_relation(value: object) -> bool:
    return isinstance(value, Relational) or (
        isinstance(value, And) and all(isinstance(part, Relational) for part in _parts(value))
    )


def _is_equation(value: object) -> bool:
    return all(isinstance(part, Eq) for part in _relations(value))


def _relations(value: object) -> list[Relational]:
    return list(_parts(value)) if isinstance(value, And) else [value]


def _parts(value: object) -> tuple[Basic, ...]:
    """The parts in the order in which they were written, those that stand twice included."""
    written: tuple[Basic, ...] = getattr(value, "_unsorted_args", ())
    known: tuple[Basic, ...] = value.args  # type: ignore[attr-defined]
    return max(known, written, key=len)  # ± is written once and has two values


def _listed(value: Basic | MatrixBase) -> list[Basic]:
    """What an answer lists: an open interval is a pair of coordinates to the parser."""
    if isinstance(value, FiniteSet | Tuple):
        return list(_parts(value))
    return [value.start, value.end] if isinstance(value, Interval) else [value]


def _value_of_chain(chain: Basic) -> Basic | None:
    """The last side of a chain of equations whose sides are equal as far as they are numbers."""
    relations = _relations(chain)
    sides = [relations[0].lhs, *(relation.rhs for relation in relations)]
    last = sides[-1]
    numbers = [side for side in sides[:-1] if _number(side) is not None]
    if all(_verified(last, side) and _close(last, side) for side in numbers):
        return last
    return None


def _same_relations(gold: list[Relational], answer: list[Relational]) -> bool:
    if len(gold) == len(answer) and _matched(gold, answer):
        return True
    if _unknowns(gold) != _unknowns(answer):
        return False
    # A chain such as 1 < x < 3 may be written from either end.
    a, b = _as_set(gold), _as_set(answer)
    return a is not None and a == b


def _unknowns(relations: list[Relational]) -> set[Basic]:
    return set().union(*(relation.free_symbols for relation in relations))


def _matched(gold: list[Basic], answer: list[Basic]) -> bool:
    """Whether each of one list has its equal in the other."""
    left = list(answer)
    for member in gold:
        other = next((o for o in left if _same_relation(member, o)), None)
        if other is None:
            return False
        left.remove(other)
    return not left


def _same_relation(gold: Basic, answer: Basic) -> bool:
    """Whether two relations have the same sides, or one is a multiple of the other."""
    if not isinstance(gold, Relational) or not isinstance(answer, Relational):
        return (
            not isinstance(gold, Relational)
            and not isinstance(answer, Relational)
            and equal(gold, answer)
        )
    if isinstance(gold, Eq) != isinstance(answer, Eq):
        return False
    if isinstance(gold, Unequality) != isinstance(answer, Unequality):
        return False
    if isinstance(gold, _STRICT) != isinstance(answer, _STRICT):
        return False
    directed = not isinstance(gold, Eq | Unequality)
    a, b = _ascending(gold), _ascending(answer)
    for x, y in ((a, b), (a, b[::-1])) if not directed else ((a, b),):
        if equal(x[0], y[0]) and equal(x[1], y[1]):
            return True
    if not all(isinstance(side, Expr) for side in (*a, *b)):
        return False
    if any(side.has(Derivative, AppliedUndef) for side in (*a, *b)):
        return False  # what is defined is no unknown that could be solved for
    difference, other = a[0] - a[1], b[0] - b[1]
    if not directed:
        difference, other = (fraction(together(side))[0] for side in (difference, other))
    if not difference.free_symbols or difference.free_symbols != other.free_symbols:
        return False
    ratio = simplify(difference / other)
    if not ratio.is_number or ratio.is_zero or not ratio.is_finite:
        return False
    return bool(ratio.is_positive) if directed else True


def _ascending(relation: Relational) -> tuple[Basic, Basic]:
    """Both sides, the smaller first if there is one."""
    sides = relation.lhs, relation.rhs
    return sides[::-1] if isinstance(relation, _GREATER) else sides


def _same_sets(gold: Basic, answer: Basic) -> bool:
    """Whether an inequality describes the set that the other side is."""
    relation, other = (gold, answer) if _is_relation(gold) else (answer, gold)
    if not isinstance(other, Set):
        if not isinstance(relation, Eq) or not _is_relation(gold):
            return False
        return isinstance(relation.lhs, Symbol) and equal(relation.rhs, other)
    parts = _relations(relation)
    if all(isinstance(part, Eq) for part in parts):
        return equal(parts[-1].rhs, other)
    described = _as_set(parts)
    return described is not None and bool(described == other)


def _as_set(relations: list[Relational]) -> Set | None:
    """The set of numbers that inequalities of one variable describe."""
    names = _unknowns(relations)
    match relations:
        case [Eq(lhs=Symbol(), rhs=Set() as described)]:  # x ∈ S is read as x = S
            return described
    if len(names) != 1 or any(isinstance(relation, Eq) for relation in relations):
        return None
    name = Symbol("x", real=True)
    described = S.Reals
    for relation in relations:
        replaced = relation.xreplace({names.copy().pop(): name})
        if not isinstance(replaced, LessThan | StrictLessThan | GreaterThan | StrictGreaterThan):
            return None
        if not (replaced.lhs - replaced.rhs).is_polynomial(name):
            return None
        described = described.intersect(replaced.as_set())
    return described


def _differ_in_capitals(gold: Basic | MatrixBase, answer: Basic | MatrixBase) -> bool:
    a, b = _letters(gold), _letters(answer)
    return a != b and {name.lower() for name in a} == {name.lower() for name in b}


def _letters(value: Basic | MatrixBase) -> set[str]:
    names = {str(symbol.name) for symbol in value.free_symbols}
    if isinstance(value, Basic):
        names |= {str(function.func) for function in value.atoms(AppliedUndef)}
    if value.has(exp):
        names.add("e")
    return names

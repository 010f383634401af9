"""Wrong programs, and what they say about tests: whether they can fail at all.

Tests that only define something, that nothing calls or that contain only data pass for every
program, and would reward it. Which tests those are shows when programs are tried that no test
should let pass.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

__all__ = ["can_fail", "hopeless_programs", "plausible_programs", "runs_nothing"]

_HOPELESS = """
class _Wrong:
    _steps = 0
    def __init__(self, *args, **kwargs): pass
    def __call__(self, *args, **kwargs): return {result}
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self
    def __setattr__(self, name, value): pass
    def __getitem__(self, key): return self
    def __setitem__(self, key, value): pass
    def __delitem__(self, key): pass
    def __iter__(self): return iter((self, self))
    def __next__(self):
        _Wrong._steps += 1
        if _Wrong._steps > 1000:
            raise StopIteration
        return self
    def __await__(self):
        yield from ()
        return self
    def __enter__(self): return self
    def __exit__(self, *args): return None
    def __hash__(self): return 0
    def __bool__(self): return {truth}
    def __len__(self): return {number}
    def __int__(self): return {number}
    def __index__(self): return {number}
    def __float__(self): return float({number})
    def __complex__(self): return complex({number})
    def __str__(self): return {text!r}
    def __format__(self, how): return {text!r}
    def __eq__(self, other): return {equal}
    def __ne__(self, other): return not {equal}
    def __lt__(self, other): return {equal}
    def __le__(self, other): return {equal}
    def __gt__(self, other): return {equal}
    def __ge__(self, other): return {equal}
    def __contains__(self, other): return {equal}
    def __instancecheck__(self, other): return {equal}
    def __subclasscheck__(self, other): return {equal}
    def __neg__(self): return self
    __pos__ = __abs__ = __invert__ = __trunc__ = __floor__ = __ceil__ = __neg__
    def __round__(self, digits=None): return self
    def __add__(self, other): return self
    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __add__
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __matmul__ = __rmatmul__ = __add__
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __add__
    def __divmod__(self, other): return self, self
    __rdivmod__ = __divmod__

def __getattr__(name): return _Wrong()
"""
"""Whatever is done with such a value works, so that nothing but a test can find fault with it."""

_NOTHING = "pass\n"
_PLAUSIBLE = {
    "returns None": "return None",
    "returns True": "return True",
    "returns 0": "return 0",
    "returns its first argument": "return args[0] if args else None",
}


def hopeless_programs(tests: str) -> list[str]:
    """Programs for `can_fail`.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the tests are not Python.
    """
    names = _names(tests)
    kinds = (
        {"equal": False, "truth": True, "number": 7919, "text": "wrong", "result": "self"},
        {"equal": True, "truth": False, "number": 0, "text": "", "result": "self"},
        {"equal": False, "truth": True, "number": 7919, "text": "wrong", "result": "None"},
    )
    bound = "".join(f"{name} = _Wrong()\n" for name in names)
    return [_NOTHING, *(_HOPELESS.format(**kind) + bound for kind in kinds)]


def can_fail(words: Sequence[str]) -> bool:
    """Whether tests can fail, from what became of the programs of `hopeless_programs`.

    Args:
        words: `passed`, or else; for a program that returns None, `asserted` if an assertion
            failed. Fewer than there are programs if the tests ended their process.
    """
    nothing, nowhere, everywhere, none = [*words, *["failed"] * 4][:4]
    if nothing == "passed":
        return False
    return nowhere != "passed" or everywhere != "passed" or none == "asserted"


def plausible_programs(tests: str) -> dict[str, str]:
    """Programs that tests worth their name refuse, by what they do.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the tests are not Python.
    """
    names = _names(tests)
    functions = {
        label: "".join(f"def {name}(*args, **kwargs): {body}\n" for name in names)
        for label, body in _PLAUSIBLE.items()
        if names
    }
    return {"defines nothing": _NOTHING, **functions}


def runs_nothing(tests: str) -> str | None:
    """Why tests evidently do nothing; None if they do something, or may.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the tests are not Python.
    """
    body = ast.parse(tests).body
    defined = [n.name for n in body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    classes = [n.name for n in body if isinstance(n, ast.ClassDef)]
    if not all(_is_inert(node) for node in body):
        return None
    if defined:
        return f"they define {defined[-1]}, which nothing calls"
    if classes:
        return f"they define the class {classes[-1]}, which nothing runs"
    if any(_is_main_guard(node) for node in body):
        return 'they run below `if __name__ == "__main__"` alone, and their module is not called so'
    return "they hold no statement that could fail"


def _is_inert(node: ast.stmt) -> bool:
    """Whether a statement runs nothing that depends on the answer."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return not node.decorator_list
        case ast.ClassDef():
            return not node.decorator_list
        case ast.Import() | ast.ImportFrom():
            return all(name != "answer" for name in _modules(node))
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=value) | ast.Assign(value=value) | ast.Assert(test=value):
            return _is_true(value) if isinstance(node, ast.Assert) else _is_data(value)
        case ast.If():
            return _is_main_guard(node) and not node.orelse
    return False


def _is_data(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        # `true`, `false` and `null` of JSON are names.
        return isinstance(node, ast.Dict | ast.List) and all(
            isinstance(part, ast.Dict | ast.List | ast.Constant | ast.Load)
            or (isinstance(part, ast.Name) and part.id in ("true", "false", "null"))
            for part in ast.walk(node)
        )
    return True


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and bool(node.value)


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in (
        "__name__ == '__main__'",
        "'__main__' == __name__",
    )


def _modules(node: ast.Import | ast.ImportFrom) -> list[str | None]:
    if isinstance(node, ast.ImportFrom):
        return [node.module]
    return [alias.name for alias in node.names]


def _names(tests: str) -> list[str]:
    """What tests may expect of a program: all names that they use and Python does not have."""
    names = {node.id for node in ast.walk(ast.parse(tests)) if isinstance(node, ast.Name)}
    for node in ast.walk(ast.parse(tests)):
        if isinstance(node, ast.ImportFrom) and node.module == "answer":
            names |= {alias.name for alias in node.names if alias.name != "*"}
    return sorted(name for name in names if not hasattr(builtins, name) and name[:2] != "__")

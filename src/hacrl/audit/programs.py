"""Programs that are wrong for any tests that test something."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

__all__ = ["wrong_programs"]


def wrong_programs(tests: str) -> Iterator[tuple[str, str]]:
    """Kind and text of responses with programs that should fail the tests.

    Args:
        tests: Python; if it is not, only a program that does nothing is made.
    """
    yield "a program that does nothing", "```python\npass\n```"
    names = _wanted(tests)
    if names:
        stubs = "\n\n".join(f"def {name}(*args, **kwargs):\n    return None" for name in names)
        yield "functions that return None", f"```python\n{stubs}\n```"


def _wanted(tests: str) -> list[str]:
    """Names that the tests call and do not make themselves."""
    try:
        tree = ast.parse(tests)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    made = {*dir(builtins)}
    called: dict[str, None] = {}
    for node in ast.walk(tree):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                made.add(name)
            case ast.alias(name=name, asname=other):
                made.add((other or name).split(".")[0])
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                made.add(name)
            case ast.Name(id=name, ctx=ast.Load()):
                called[name] = None
            case _:
                pass
    return [name for name in called if name not in made]

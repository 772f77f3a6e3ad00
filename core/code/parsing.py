"""Python's own parser and compiler, by one thread at a time and without a warning.

CPython up to 3.12 counts the depth of a syntax tree that is being built in one place for all threads
(python/cpython#106905), and keeps the filters of warnings likewise. A thread that is put aside in the middle of a tree,
by a finalizer or a callback of the garbage collector, comes back to a count that is another's: `SystemError`.
"""

from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from types import CodeType
from typing import TypeVar

from gistpoint.core.collector import uncollected

T = TypeVar("T")

_LOCK = threading.RLock()
_TRIES = 10
_MISCOUNTED = "recursion depth mismatch"


def parse(source: str | bytes) -> ast.Module:
    """Return the syntax tree of a module. Raises what `ast.parse` raises, but never for what another thread does."""
    return undisturbed(lambda: ast.parse(source))


def parse_expression(text: str) -> ast.expr:
    """Return the syntax tree of one expression. Raises as `parse` does."""
    return undisturbed(lambda: ast.parse(text, mode="eval")).body


def compile_module(source: str | ast.Module, name: str) -> CodeType:
    """Compile a module under the file name `name`; nothing of it is run. Raises what `compile` raises."""
    return undisturbed(lambda: compile(source, name, "exec", dont_inherit=True))


def fault_in(source: str) -> str:
    """Return why a text is no Python module, with the line if that is known; empty for one that compiles."""
    try:
        compile_module(source, "<text>")
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}" if error.lineno else error.msg
    except ValueError as error:
        return str(error)
    except (RecursionError, MemoryError, OverflowError):
        return "it is nested too deeply to be compiled"
    return ""


def undisturbed(call: Callable[[], T]) -> T:
    """Return what `call` returns, which has Python build syntax trees and can be begun again.

    Begun again, with the collector put off, is what was disturbed by a thread whose parsing does not pass here, such as
    a library's.
    """
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except SystemError as error:
            if _MISCOUNTED not in str(error):
                raise
        for _ in range(_TRIES):
            with uncollected(), suppress(SystemError):
                return call()
        return call()

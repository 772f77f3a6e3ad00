"""Function names read from the source for Python before 3.11 equal those of later code objects."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import CodeType

from gistpoint.sandbox.payload.tracers import _lines_of, _names_in

TEXT = """
import functools


def plain(x, later=lambda: 1):
    return [lambda: y for y in x]


@functools.lru_cache(
    maxsize=None,
)
def decorated():
    def inner():
        class Local:
            async def method(self):
                yield 1
        return Local
    return inner


class Outer:
    class Inner:
        @staticmethod
        def static(): return lambda: 2

        @property
        def value(self):
            return 1

        @value.setter
        def value(self, new): ...
"""


def functions_in(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_flags & 0x2 and inner.co_name != "<listcomp>":
                yield inner
            yield from functions_in(inner)


def test_names_are_those_of_the_code() -> None:
    known = {
        (code.co_firstlineno, code.co_name): code.co_qualname.replace("<listcomp>.", "")
        for code in functions_in(compile(TEXT, "text.py", "exec"))
    }
    found = _names_in(ast.parse(TEXT))
    assert len(known) == 10
    assert {**found, (5, "<lambda>"): "<lambda>"} == known  # the lambda in a default belongs to the module


def test_lines_are_those_of_the_code() -> None:
    for code in functions_in(compile(TEXT, "text.py", "exec")):
        assert _lines_of(code) == {line for _, _, line in code.co_lines() if line}

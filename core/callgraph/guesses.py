"""Calls on receivers of which nothing is known, guessed from the method's name."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from threading import Thread

from gistpoint.core.callgraph.expressions import MethodCall
from gistpoint.core.callgraph.graph import Found
from gistpoint.core.callgraph.program import Program
from gistpoint.core.callgraph.values import Class, Function

_BUILTIN_TYPES: tuple[object, ...] = (
    str, bytes, int, float, list, dict, set, tuple, io.TextIOWrapper, io.BytesIO, re.compile(""), re.match("", ""),
    BaseException, Thread,
)  # fmt: skip
COMMON_NAMES = frozenset(name for kind in _BUILTIN_TYPES for name in dir(kind))


class Guesses:
    """Takes the only method of a name in the sources for the one that is called, where nothing else is known."""

    def __init__(self, program: Program, calls: Sequence[MethodCall]) -> None:
        self.program = program
        self.calls = list(calls)
        self._by_name: dict[str, list[Function]] = {}
        for function in program.definitions.functions.values():
            if function.cls is not None:
                self._by_name.setdefault(function.name, []).append(function)

    def add(self) -> bool:
        """Let unresolved calls reach their guesses; whether there were any."""
        solver = self.program.solver
        open_calls: list[MethodCall] = []
        guessed: list[tuple[MethodCall, Function]] = []
        for item in self.calls:
            if not solver.is_empty(item.callee):
                continue
            function = self._only(item.call.name) if solver.is_empty(item.receiver) else None
            if function is not None:
                guessed.append((item, function))
            else:
                open_calls.append(item)
        self.calls = open_calls
        for item, function in guessed:
            assert function.cls is not None
            item.call.found = Found.NAME
            receiver: Class = function.cls
            solver.add(item.callee, self.program.bound(function, receiver.open_instance))
        return bool(guessed)

    def _only(self, name: str) -> Function | None:
        if name in COMMON_NAMES or name.startswith("__"):
            return None
        found = self._by_name.get(name, [])
        if len(found) > 1:
            roots = [item for item in found if item.cls and all(o.cls and item.cls in o.cls.mro for o in found)]
            return roots[0] if roots else None
        return found[0] if found else None

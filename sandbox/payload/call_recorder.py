"""A pytest plugin that records the arguments of calls of given functions.

Runs in the target's interpreter. The order has the `ids` of the tests to run, those to run `first`, the
`targets` (path, name, first and last line), `most`, the number of different calls to keep for each target,
and the paths of the `test_files`. The records over the pipe are `call` (the number of the target, the module,
the pickled arguments in the order of the signature, the shape of the signature, and the number of objects in
the arguments that could not be pickled), `caller` (the same for the call to a function through which a test
reached the target, with the path and the first line of that function), `passed_over` (calls whose arguments
could not be kept) and `finish`.
"""

from __future__ import annotations

import base64
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING or "." in __name__:
    from gistpoint.sandbox.payload.call_values import dumps
    from gistpoint.sandbox.payload.results_plugin import Registering, close_input, opened_channel, taken_order
else:
    from gistpoint_results import Registering, close_input, opened_channel, taken_order
    from gistpoint_values import dumps

_LARGEST = 200_000
"""The limit on the pickled arguments of one call, in bytes."""
_MOST_BYTES = 4_000_000
"""The limit on the pickled arguments of all calls to a function, in bytes."""
_VARARGS, _KEYWORDS, _NESTED = 4, 8, 16
_MOST_CALLERS = 4
"""The maximum number of functions that are recorded as callers of a target."""
_PLAIN = (str, bytes, int, float, list, tuple, dict, set, frozenset)
"""The classes of arguments that can be varied as a whole."""


class CallWatch:
    """A recorder of the calls to the targets while the tests run."""

    def __init__(self, order: dict[str, Any], root: str, put: Callable[..., None]) -> None:
        self.put = put
        self.ids = frozenset(order["ids"])
        self.first = frozenset(order["first"])
        self.root = os.path.realpath(root) + os.sep
        self.test_files = frozenset(order["test_files"])
        self.paths: dict[str, str] = {}
        """The path in the tree of each file of code; empty outside of the tree."""
        self.callers: list[dict[CodeType, set[bytes]]] = [{} for _ in order["targets"]]
        """The recorded arguments of the callers of each target."""
        self.tried = Counter[CodeType]()
        """The number of calls to each caller that were pickled, or could not be."""
        self.targets = order["targets"]
        self.most = order["most"]
        self.known: dict[tuple[str, CodeType], int] = {}
        """The number of the target of code in a file: equal functions of two files have equal code."""
        self.starts: dict[CodeType, int] = {}
        self.seen: list[set[bytes]] = [set() for _ in self.targets]
        self.passed_over = [0 for _ in self.targets]
        self.size = [0 for _ in self.targets]
        self.why = ["" for _ in self.targets]

    def target_of(self, code: CodeType) -> int:
        """Return the number of the target that a code object belongs to; -1 if it belongs to none."""
        key = code.co_filename, code
        found = self.known.get(key)
        if found is None:
            file = os.path.realpath(code.co_filename)
            found = self.known[key] = -1
            for number, (path, name, first, last) in enumerate(self.targets):
                inside = first <= code.co_firstlineno <= last and code.co_name == name
                if inside and file == self.root + path:
                    found = self.known[key] = number
        return found

    def called(self, frame: FrameType, event: str, _argument: object) -> None:
        """Record the call to a target, as a trace function; the lines of functions are not traced."""
        code = frame.f_code
        number = self.known.get((code.co_filename, code), -2)
        if number == -1:
            return
        if number == -2:
            number = self.target_of(code)
        if number < 0 or len(self.seen[number]) >= self.most:
            return
        if self.starts.setdefault(code, frame.f_lasti) != frame.f_lasti:
            return  # a generator is resumed
        sys.settrace(None)
        try:
            self.take(number, frame)
        finally:
            self.trace_with(sys.settrace)

    def trace_with(self, install: Callable[[Any], object]) -> None:
        """Install this tracer by calling `install`, unless every target already has enough calls."""
        if any(len(seen) < self.most for seen in self.seen):
            install(self.called)

    def take(self, number: int, frame: FrameType) -> None:
        """Record the call to a target, and to the function through which the test reached it."""
        try:
            data, fields = _taken(frame)
            self.size[number] += len(data)
            if self.size[number] > _MOST_BYTES:
                raise ValueError("the arguments of all calls are too large")
        except BaseException as error:
            self.passed_over[number] += 1
            self.why[number] = f"{type(error).__name__}: {error}"[:200]
            self.take_caller(number, frame)
            return
        if data in self.seen[number]:
            return
        self.seen[number].add(data)
        self.put("call", target=number, **fields)
        self.take_caller(number, frame)

    def take_caller(self, number: int, frame: FrameType) -> None:
        """Record the call through which a test reached a target, if its arguments can be kept."""
        caller = self.caller_of(frame)
        if caller is None:
            return
        known, code = self.callers[number], caller.f_code
        if code not in known and len(known) >= _MOST_CALLERS:
            return
        seen = known.setdefault(code, set())
        self.tried[code] += 1
        if self.tried[code] > self.most:
            return
        try:
            data, fields = _taken(caller)
        except BaseException:
            return
        if data in seen or sum(map(len, seen)) + len(data) > _MOST_BYTES:
            return
        seen.add(data)
        path = self.path_of(code)
        self.put("caller", target=number, path=path, first=code.co_firstlineno, **fields)

    def caller_of(self, frame: FrameType) -> FrameType | None:
        """Return the outermost call around a target, below the test, that has an argument to vary.

        Only functions of the tree that are found by their names count. None if there is none.
        """
        found, outer = None, frame.f_back
        while outer is not None:
            path = self.path_of(outer.f_code)
            if path in self.test_files:
                break
            if path and outer.f_code is not frame.f_code and _can_be_varied(outer):
                found = outer
            outer = outer.f_back
        return found

    def path_of(self, code: CodeType) -> str:
        """Return the path of a code object's file in the tree; empty if the file is not in the tree."""
        name = code.co_filename
        if name not in self.paths:
            file = os.path.realpath(name)
            self.paths[name] = file[len(self.root) :] if file.startswith(self.root) else ""
        return self.paths[name]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Any:
        """Keep only the tests that the order names, all if it names none, and begin with the `first`."""
        yield
        if self.ids:
            items[:] = [item for item in items if item.nodeid in self.ids]
        items.sort(key=lambda item: item.nodeid not in self.first)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Trace each test again, because an earlier test may have installed another trace function."""
        self.trace_with(threading.settrace)
        self.trace_with(sys.settrace)
        done = yield
        sys.settrace(None)
        threading.settrace(None)
        return done

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Report how many calls were passed over, and that the suite has ended."""
        self.put("passed_over", counts=self.passed_over, why=self.why)
        self.put("finish", exit=int(exitstatus))


def _taken(frame: FrameType) -> tuple[bytes, dict[str, Any]]:
    """Return the pickled arguments of a call that begins or is not yet over, and the fields of its record.

    Raises an exception if they can't be kept.
    """
    code = frame.f_code
    varargs, keywords = bool(code.co_flags & _VARARGS), bool(code.co_flags & _KEYWORDS)
    named = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[: named + varargs + keywords]
    # The arguments of a target are pickled as its call begins, because it may change them. Those of a caller
    # may already be changed, which is no fault: both versions are called with the same ones.
    data, absent = dumps([frame.f_locals[name] for name in names])
    if len(data) > _LARGEST:
        raise ValueError("its arguments are too large")
    return data, {
        "module": frame.f_globals.get("__name__", ""),
        "arguments": base64.b64encode(data).decode("ascii"),
        "shape": [code.co_argcount, list(names[code.co_argcount : named]), varargs, keywords, list(names)],
        "absent": absent,
    }


def _can_be_varied(frame: FrameType) -> bool:
    """Whether a function is found by its name, and has an argument that is plain and not empty."""
    code = frame.f_code
    if code.co_flags & _NESTED or code.co_name.startswith("<"):
        return False
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & _VARARGS)
    values = (frame.f_locals.get(name) for name in code.co_varnames[:count])
    return any(type(value) in _PLAIN and bool(value) for value in values)


def begin() -> Registering:
    """Read the order, open the pipe, and return a plugin that registers the recorder."""
    order = taken_order()
    close_input()
    put = opened_channel(int(os.environ.pop("GISTPOINT_RESULTS")))
    return Registering(CallWatch(order, os.environ.pop("GISTPOINT_ROOT"), put))

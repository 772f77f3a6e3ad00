"""A pytest plugin that records the arguments of calls of given functions.

Runs in the target's interpreter. The order has the `ids` of the tests to run, the `targets` (path, name,
first and last line) and `most`, the number of different calls to keep for each target. The records over the
pipe are `call` (the number of the target, the module, the pickled arguments in the order of the signature,
the shape of the signature, and the number of objects in the arguments that could not be pickled),
`passed_over` (calls whose arguments could not be kept) and `finish`.
"""

from __future__ import annotations

import base64
import os
import sys
import threading
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
"""The limit on the pickled arguments of all calls of a function, in bytes."""
_VARARGS, _KEYWORDS = 4, 8


class CallWatch:
    """A recorder of the calls of the targets while the tests run."""

    def __init__(self, order: dict[str, Any], root: str, put: Callable[..., None]) -> None:
        self.put = put
        self.ids = frozenset(order["ids"])
        self.root = os.path.realpath(root) + os.sep
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
        """Record the call of a target, as a trace function; the lines of functions are not traced."""
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
            self.look(sys.settrace)

    def look(self, install: Callable[[Any], object]) -> None:
        """Install this tracer by calling `install`, unless every target already has enough calls."""
        if any(len(seen) < self.most for seen in self.seen):
            install(self.called)

    def take(self, number: int, frame: FrameType) -> None:
        code = frame.f_code
        varargs, keywords = bool(code.co_flags & _VARARGS), bool(code.co_flags & _KEYWORDS)
        named = code.co_argcount + code.co_kwonlyargcount
        names = code.co_varnames[: named + varargs + keywords]
        try:
            values = [frame.f_locals[name] for name in names]
            # Pickled at the start of the call, because the function may change its arguments.
            data, absent = dumps(values)
            self.size[number] += len(data)
            if len(data) > _LARGEST or self.size[number] > _MOST_BYTES:
                raise ValueError("its arguments are too large")
        except BaseException as error:
            self.passed_over[number] += 1
            self.why[number] = f"{type(error).__name__}: {error}"[:200]
            return
        if data in self.seen[number]:
            return
        self.seen[number].add(data)
        shape = [code.co_argcount, list(names[code.co_argcount : named]), varargs, keywords, list(names)]
        self.put(
            "call",
            target=number,
            module=frame.f_globals.get("__name__", ""),
            arguments=base64.b64encode(data).decode("ascii"),
            shape=shape,
            absent=absent,
        )

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Any:
        """Keep only the tests that the order names; all tests if it names none."""
        yield
        if self.ids:
            items[:] = [item for item in items if item.nodeid in self.ids]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Trace each test again, because an earlier test may have installed another trace function."""
        self.look(threading.settrace)
        self.look(sys.settrace)
        done = yield
        sys.settrace(None)
        threading.settrace(None)
        return done

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Report how many calls were passed over, and that the suite has ended."""
        self.put("passed_over", counts=self.passed_over, why=self.why)
        self.put("finish", exit=int(exitstatus))


def begin() -> Registering:
    """Read the order, open the pipe, and return a plugin that registers the recorder."""
    order = taken_order()
    close_input()
    put = opened_channel(int(os.environ.pop("GISTPOINT_RESULTS")))
    return Registering(CallWatch(order, os.environ.pop("GISTPOINT_ROOT"), put))

"""Detects a call's changes to its process besides its answer, which the tests can't see (decision 158).

Runs in the target's interpreter, in the submission's process. A test that checks that nothing was changed
passes in another process, whatever the function does.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

_MOST_KEPT = 5_000
_SHARED = (list, dict, set, bytearray)


def _of_module(module: str, get: Callable[[Any], object]) -> Callable[[], object]:
    """Return a function that reads the state of a module, which may not be imported yet."""

    def read() -> object:
        found = sys.modules.get(module)
        return None if found is None else get(found)

    return read


_ENVIRON = os.environ
_RAW_ENVIRON: Any = getattr(os.environ, "_data", os.environ)
"""The dictionary behind `os.environ`, which is read without decoding."""
_READ: dict[str, Callable[[], object]] = {
    "the environment": lambda: (os.environ is _ENVIRON, dict(_RAW_ENVIRON)),
    "the working directory": os.getcwd,
    "the recursion limit": sys.getrecursionlimit,
    "the import path": lambda: list(sys.path),
    "tracing": lambda: (sys.gettrace(), sys.getprofile()),
    "the threads": threading.active_count,
    "the state of random": _of_module("random", lambda module: module.getstate()),
    "the decimal context": _of_module("decimal", lambda module: repr(module.getcontext())),
    "the locale": _of_module("locale", lambda module: module.setlocale(module.LC_ALL)),
    "the collection of garbage": _of_module(
        "gc", lambda module: (module.isenabled(), module.get_threshold())
    ),
    # The module in C, because the one in Python converts each handler to a member of an enumeration.
    "signals": _of_module("_signal", lambda module: list(map(module.getsignal, range(1, module.NSIG)))),
}


class ProcessState:
    """The state of the process before a call, and the objects that earlier calls returned."""

    def __init__(self) -> None:
        self.answered: dict[int, object] = {}
        """The mutable answers so far by their ids; keeping them keeps the ids unique."""

    def read(self) -> dict[str, object]:
        """Return the state of each part of the process, by the part's name."""
        return {name: _state(read) for name, read in _READ.items()}

    def changed(self, before: dict[str, object]) -> list[str]:
        """Return the names of the parts that changed since `before`, except in newly imported modules."""
        found = []
        for name, read in _READ.items():
            old, new = before[name], _state(read)
            if old is not None and old != new:
                found.append(name)
        return found

    def is_shared(self, value: object, given: Callable[[object], bool]) -> bool:
        """Return whether an earlier call returned this list, dictionary, set or bytearray.

        If none did, the object is remembered as an answer, up to a limit. `given` returns whether an object
        came with the request: such objects are known to the tests' process, and never count.
        """
        if type(value) not in _SHARED or given(value):
            return False
        if self.answered.get(id(value)) is value:
            return True
        if len(self.answered) < _MOST_KEPT:
            self.answered[id(value)] = value
        return False


def _state(read: Callable[[], object]) -> object:
    try:
        return read()
    except Exception as error:  # the submission may have replaced anything
        return f"unreadable: {type(error).__name__}"

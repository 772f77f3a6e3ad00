"""A call's changes to its process besides its answer, which the tests can't see (decision 158).

Runs in the target's interpreter, in the process that holds the submission. A test that checks that nothing
was changed passes in another process, whatever the function does.
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
    # The module in C, because that in Python makes an enumeration's member of each handler.
    "signals": _of_module("_signal", lambda module: list(map(module.getsignal, range(1, module.NSIG)))),
}


class ProcessState:
    """The state of the process before a call, and the objects with which earlier calls answered."""

    def __init__(self) -> None:
        self.answered: dict[int, object] = {}
        """The mutable answers so far by their ids; keeping them keeps the ids unique."""

    def read(self) -> dict[str, object]:
        """Return the state by what it is the state of."""
        return {name: _state(read) for name, read in _READ.items()}

    def changed(self, before: dict[str, object]) -> list[str]:
        """Return the changes since `before`, in words; modules imported since then changed nothing."""
        found = []
        for name, read in _READ.items():
            old, new = before[name], _state(read)
            if old is not None and old != new:
                found.append(name)
        return found

    def is_shared(self, value: object, given: Callable[[object], bool]) -> bool:
        """Return whether an earlier call answered with this list, dictionary, set or bytearray.

        `given` returns whether an object came with the request: the tests' process recognises these.
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

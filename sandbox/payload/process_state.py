"""Detects a call's changes to its process besides its answer, which the tests can't see (decision 158).

Runs in the target's interpreter, in the submission's process. A test that checks that nothing was changed
passes in another process, whatever the function does.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or "." in __name__:
    from gistpoint.sandbox.payload.plain_sides import LOCKS, NODE_KINDS, UNCHANGING
else:
    from gistpoint_sides import LOCKS, NODE_KINDS, UNCHANGING

_MOST_KEPT = 5_000
_MOST_TRACKED, _MOST_OF_CALL = 200, 50
_ALL_CALLS, _EACH = 200, 16


def _of_module(module: str, get: Callable[[Any], object]) -> Callable[[], object]:
    """Return a function that reads the state of a module, which may not be imported yet."""

    def read() -> object:
        found = sys.modules.get(module)
        return None if found is None else get(found)

    return read


def _settings_of(context: Any) -> object:
    """Return what decides about results in a decimal context: not the flags, which results leave there."""
    names = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
    return [*(getattr(context, name) for name in names), dict(context.traps)]


def _umask() -> int:
    mask = os.umask(0o77)
    os.umask(mask)
    return mask


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
    "the decimal context": _of_module("decimal", lambda module: _settings_of(module.getcontext())),
    "the locale": _of_module("locale", lambda module: module.setlocale(module.LC_ALL)),
    "the collection of garbage": _of_module(
        "gc", lambda module: (module.isenabled(), module.get_threshold())
    ),
    # The module in C, because the one in Python converts each handler to a member of an enumeration.
    "signals": _of_module("_signal", lambda module: list(map(module.getsignal, range(1, module.NSIG)))),
    "the standard streams": lambda: [sys.stdin, sys.stdout, sys.stderr],
    "the mode of new files": _umask,
}


class ProcessState:
    """The state of the process before a call, and the objects in the answers to earlier calls."""

    def __init__(self) -> None:
        self.answered: dict[int, tuple[object, int]] = {}
        """The objects of answers with the numbers of their calls, by id; keeping them keeps ids unique."""

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

    def is_shared(self, made: Iterable[object], call: int) -> bool:
        """Return whether one of the objects in the answers to a call was in one to an earlier call.

        `made` are the objects of the submission in the call's answers, at any depth. Only those that can
        change count. They are remembered with the call, up to a limit.
        """
        found = False
        for value in filter(_can_change, made):
            known, of_call = self.answered.get(id(value), (None, call))
            found = found or (known is value and of_call != call)
            if len(self.answered) < _MOST_KEPT:
                self.answered.setdefault(id(value), (value, call))
        return found


class EarlierCalls:
    """The objects of earlier calls, their arguments and answers, which a later call may reach and change.

    In the tests' process, such a change would not arrive: each call has its own copies of its objects.
    """

    def __init__(self, is_changed: Callable[[Any], bool]) -> None:
        """`is_changed(objects)` returns whether the objects of a call differ from those last sent."""
        self.is_changed = is_changed
        self.calls: dict[int, Any] = {}
        self.number = 0

    def add(self, call: int, shared: Any) -> None:
        """Remember the objects of a call that has been answered, unless they are too many."""
        if len(shared.objects) > _MOST_OF_CALL:
            return
        self.calls.pop(call, None)
        self.calls[call] = shared
        while sum(len(one.objects) for one in self.calls.values()) > _MOST_TRACKED:
            del self.calls[next(iter(self.calls))]

    def are_changed(self, call: int) -> bool:
        """Return whether objects of another call than this one were changed since they were last sent.

        After 200 calls, only every 16th is examined, because that takes as long as a short call.
        """
        self.number += 1
        if self.number > _ALL_CALLS and self.number % _EACH:
            return False
        return any(self.is_changed(shared) for number, shared in self.calls.items() if number != call)


def locked(objects: Iterable[object]) -> set[int]:
    """Return the ids of those objects that are locks and are held."""
    return {id(lock) for lock in objects if type(lock) in LOCKS and _is_held(lock)}


def _is_held(lock: Any) -> bool:
    if hasattr(lock, "locked"):
        return bool(lock.locked())
    return bool(lock._is_owned())  # a reentrant lock, before Python 3.14


def _can_change(value: object) -> bool:
    """Whether the owner of an object could change it; objects of a class that defines a hash are values."""
    kind: Any = type(value)
    if kind in NODE_KINDS:
        return kind not in LOCKS
    if isinstance(value, (BaseException, *UNCHANGING)):
        return False
    is_frozen = getattr(getattr(kind, "__dataclass_params__", None), "frozen", False)
    return not is_frozen and getattr(kind, "__hash__", None) in (None, object.__hash__)


def _state(read: Callable[[], object]) -> object:
    try:
        return read()
    except Exception as error:  # the submission may have replaced anything
        return f"unreadable: {type(error).__name__}"

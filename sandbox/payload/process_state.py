"""Detects a call's changes to its process besides its answer, which the tests can't see (decision 158).

Runs in the target's interpreter, in the submission's process. A test that checks that nothing was changed
passes in another process, whatever the function does.
"""

from __future__ import annotations

import _socket
import atexit
import builtins
import contextlib
import contextvars
import decimal
import gc
import importlib
import locale
import logging
import os
import random
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or "." in __name__:
    from gistpoint.sandbox.payload.plain_sides import (
        LOCKS,
        NODE_KINDS,
        UNCHANGING,
        attributes_of,
        type_name,
    )
else:
    from gistpoint_sides import LOCKS, NODE_KINDS, UNCHANGING, attributes_of, type_name

OF_VALUE = "a value of an earlier call, with "
"""The beginning of a report on a value that occurs again; an attribute follows, as `module:class.name`."""
_MOST_KEPT = 500_000
"""The maximum number of remembered objects; more than the answers of a run that is repeated contain."""
_MOST_TRACKED, _MOST_OF_CALL = 200, 50
_ALL_CALLS, _EACH = 200, 16
_THREADS = "the threads"
_MOST_WAITS, _WAIT_S = 20, 0.005


def _settings_of_decimal() -> object:
    """Return the settings of the decimal context that affect results; its flags are set by results."""
    context = decimal.getcontext()
    names = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
    return [*(getattr(context, name) for name in names), dict(context.traps)]


def _umask() -> int:
    mask = os.umask(0o77)
    os.umask(mask)
    return mask


def _loggers() -> object:
    """Return the settings of loggers, by name, without new loggers and handlers that drop their records."""
    known = [("", logging.root), *logging.root.manager.loggerDict.copy().items()]
    found = {}
    for name, logger in known:
        if isinstance(logger, logging.Logger):
            handlers = [part for part in logger.handlers if not isinstance(part, logging.NullHandler)]
            state = [logger.level, logger.disabled, logger.propagate, handlers, list(logger.filters)]
            if state != _UNSET_LOGGER:
                found[name] = state
    return logging.root.manager.disable, found


_UNSET_LOGGER = [0, False, True, [], []]


def _random_state_of_numpy() -> object:
    """Return the state of numpy's global random numbers; None if `numpy.random` is not imported yet."""
    found: Any = sys.modules.get("numpy.random")
    state = () if found is None else found.get_state()
    return [part.tobytes() if hasattr(part, "tobytes") else part for part in state] or None


def _settings_of_numpy() -> object:
    """Return how numpy reports errors and prints arrays; None if numpy is not imported yet."""
    found: Any = sys.modules.get("numpy")
    return None if found is None else (found.geterr(), found.get_printoptions())


_OF_SETTINGS = frozenset(("decimal_context", "numpy.ufunc.extobj", "format_options"))
"""The context variables of `decimal` and numpy, whose settings are compared separately."""


class _ContextVariables:
    """The values of all context variables; equal to others if each variable has the same object."""

    def __init__(self) -> None:
        held = contextvars.copy_context().items()
        self.values = {variable: value for variable, value in held if variable.name not in _OF_SETTINGS}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _ContextVariables) or self.values.keys() != other.values.keys():
            return False
        return all(value is other.values[variable] for variable, value in self.values.items())

    __hash__ = None  # type: ignore[assignment]


def _timers() -> object:
    """Return which timers of the process are running, regardless of their remaining time."""
    timers = (_SIGNAL.ITIMER_REAL, _SIGNAL.ITIMER_VIRTUAL, _SIGNAL.ITIMER_PROF)
    return [any(_SIGNAL.getitimer(timer)) for timer in timers]


def _threads() -> object:
    """Return the number of threads, as Python knows them and as the system does: it counts those as links."""
    with contextlib.suppress(OSError):
        return threading.active_count(), os.stat("/proc/self/task").st_nlink
    return threading.active_count(), len(sys._current_frames())  # the folder can't be read on Landlock


def _has_more(after: Any, before: Any) -> bool:
    """Whether there are other threads that Python knows, or more of the system's, than before."""
    return bool(after[:1] != before[:1] or after[1:] > before[1:])


def _has_children() -> bool:
    """Return whether the process has children, even ended ones, without waiting for one."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


_SETTINGS = ("tracebacklimit", "dont_write_bytecode", "ps1", "ps2")
_HOOKS = ("excepthook", "displayhook", "unraisablehook", "breakpointhook")
_DESCRIPTORS = "/proc/self/fd"
# The module in C, because the one in Python converts each handler to a member of an enumeration.
_SIGNAL: Any = importlib.import_module("_signal")
_ENVIRON = os.environ
_RAW_ENVIRON: Any = getattr(os.environ, "_data", os.environ)
"""The dictionary behind `os.environ`, which is read without decoding."""
_READ: dict[str, Callable[[], object]] = {
    "the environment": lambda: (os.environ is _ENVIRON, dict(_RAW_ENVIRON)),
    "the working directory": os.getcwd,
    "the recursion limit": sys.getrecursionlimit,
    "the import path": lambda: list(sys.path),
    "tracing": lambda: (sys.gettrace(), sys.getprofile()),
    _THREADS: _threads,
    "the child processes": _has_children,
    "blocked signals": lambda: _SIGNAL.pthread_sigmask(_SIGNAL.SIG_BLOCK, ()),
    "the functions at exit": lambda: atexit._ncallbacks(),
    "settings of the interpreter": lambda: [getattr(sys, name, None) for name in _SETTINGS],
    "the state of random": lambda: random.getstate(),
    "the decimal context": _settings_of_decimal,
    "the locale": lambda: locale.setlocale(locale.LC_ALL),
    "the collection of garbage": lambda: (gc.isenabled(), gc.get_threshold()),
    "signals": lambda: list(map(_SIGNAL.getsignal, range(1, _SIGNAL.NSIG))),
    "the standard streams": lambda: [sys.stdin, sys.stdout, sys.stderr],
    "the mode of new files": _umask,
    "the filters of warnings": lambda: (
        list(warnings.filters),
        warnings.showwarning,
        warnings.formatwarning,
    ),
    "the settings of loggers": _loggers,
    "the hooks of the interpreter": lambda: (
        [getattr(sys, name, None) for name in _HOOKS],
        [getattr(threading, name, None) for name in ("excepthook", "_trace_hook", "_profile_hook")],
        list(gc.callbacks),
    ),
    "the import hooks": lambda: (list(sys.meta_path), list(sys.path_hooks)),
    "the arguments of the program": lambda: list(sys.argv),
    "the built-in names": lambda: dict(vars(builtins)),
    "the open files": lambda: sorted(os.listdir(_DESCRIPTORS)),
    "the context variables": _ContextVariables,
    "the timers": _timers,
    "the time limit of sockets": lambda: _socket.getdefaulttimeout(),
    "the state of numpy's random numbers": _random_state_of_numpy,
    "the settings of numpy": _settings_of_numpy,
}
OF_WORK = frozenset((_THREADS, "the open files", "the child processes"))
"""What may be different while a call is at work, if it is not when the call ends."""
_OF_NUMPY = frozenset(("the state of numpy's random numbers", "the settings of numpy"))


class ProcessState:
    """The state of the process before a call, and the objects in the answers to earlier calls."""

    def __init__(self) -> None:
        self.answered: dict[int, tuple[Callable[[], object], int]] = {}
        """The objects of answers with the numbers of their calls, by id; keeping them keeps ids unique."""
        self.values: set[str] = set()
        """The attributes of values in several answers, as `module:class.name`."""

    @property
    def is_full(self) -> bool:
        """Whether no more objects can be remembered."""
        return len(self.answered) >= _MOST_KEPT

    def read(self, without: frozenset[str] = frozenset()) -> dict[str, object]:
        """Return the state of each part of the process, by the part's name, without some."""
        return {name: _state(read) for name, read in _READ.items() if name not in without}

    def changed(self, before: dict[str, object], without: frozenset[str] = frozenset()) -> list[str]:
        """Return the names of the parts that changed since `before`.

        Left out are those in `without`, and those of numpy if it was imported since.
        """
        after = self.read(without)
        for _ in range(_MOST_WAITS):
            # A thread that was waited for may take a moment to end, in this call or the one before.
            if _THREADS not in after or not _has_more(after[_THREADS], before[_THREADS]):
                break
            time.sleep(_WAIT_S)
            after[_THREADS] = _state(_threads)
        else:
            return [_THREADS, *self.changed(before, without | {_THREADS})]
        after.pop(_THREADS, None)
        known = {name for name in after if before[name] is not None or name not in _OF_NUMPY}
        return [name for name in after if name in known and before[name] != after[name]]

    def is_shared(self, made: Iterable[object], call: int) -> bool:
        """Return whether one of the objects in the answers to a call was in one to an earlier call.

        `made` are the objects of the submission in the call's answers, at any depth. Only those that can
        change count; of values, which only a test or other code of the library could change, the attributes
        are added to `values`. All are remembered with the call, up to a limit.
        """
        found = False
        for value in made:
            known, of_call = self.answered.get(id(value), (_nothing, call))
            if known() is value:
                if of_call != call:
                    found = found or _can_change(value)
                    self.values.update(attributes_of_value(value))
            elif not self.is_full:
                self.answered[id(value)] = _holding(value), call
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
        self.values: set[str] = set()
        """The attributes of values that an earlier call was given, as `module:class.name`."""

    def add(self, call: int, shared: Any) -> bool:
        """Remember the objects of a call that has been answered; return False if its answer has too many."""
        if len(shared.objects) > _MOST_OF_CALL:
            # Only too many objects of its own count against a submission: it can't make the test pass more.
            given: int = sum(number * shared.side.step < 0 for number in shared.objects)
            return given > _MOST_OF_CALL
        self.calls.pop(call, None)
        self.calls[call] = shared
        while sum(len(one.objects) for one in self.calls.values()) > _MOST_TRACKED:
            del self.calls[next(iter(self.calls))]
        return True

    def were_given(self, made: Iterable[object], call: int) -> bool:
        """Return whether one of the objects in the answers to a call was an argument of an earlier one.

        `made` are as in `ProcessState.is_shared`. The tests' process would have two objects in its place.
        """
        earlier = [shared for number, shared in self.calls.items() if number != call]
        found = False
        for value in made:
            # The numbers of objects that the tests' process made have its sign.
            if any(one.numbers.get(id(value), 0) * one.side.step < 0 for one in earlier):
                found = found or _can_change(value)
                self.values.update(attributes_of_value(value))
        return found

    def are_changed(self, call: int) -> bool:
        """Return whether objects of another call than this one were changed since they were last sent.

        After 200 calls, only every 16th is examined, because that takes as long as a short call.
        """
        self.number += 1
        if self.number > _ALL_CALLS and self.number % _EACH:
            return False
        return any(self.is_changed(shared) for number, shared in self.calls.items() if number != call)


def has_lost_members(value: Any) -> bool:
    """Return whether a container no longer finds a member because its hash has changed since it was added.

    A copy of the container, such as the one in the tests' process, would find it.
    """
    if not isinstance(value, (dict, set)):
        return False
    base: Any = dict if isinstance(value, dict) else set
    try:
        members = [part for part in base.__iter__(value) if type(part) not in _SCALARS]
        return not all(base.__contains__(value, part) for part in members)
    except Exception:  # the library decides about the hash of its objects
        return False


_SCALARS = frozenset((type(None), bool, int, float, str, bytes))


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


def _nothing() -> object:
    return _ABSENT


_ABSENT = object()


def _holding(value: object) -> Callable[[], object]:
    """Return a function that returns an object, kept alive unless it is an exception, which holds frames."""
    if not isinstance(value, BaseException):
        return lambda: value
    try:
        return weakref.ref(value)
    except TypeError:  # one of a built-in class
        return _nothing


def attributes_of_value(value: object) -> list[str]:
    """Return the attributes that code could change of an object that counts as a value."""
    if _can_change(value) or type(value) in LOCKS:
        return []
    kind = type(value)
    more = ("args",) if isinstance(value, BaseException) else ()
    return [f"{type_name(kind)}.{name}" for name in (*attributes_of(value), *more)]


def _state(read: Callable[[], object]) -> object:
    try:
        return read()
    except Exception as error:  # the submission may have replaced anything
        return f"unreadable: {type(error).__name__}"

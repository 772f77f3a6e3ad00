"""Gives the submission's process what a test has set or replaced besides arguments (decision 220).

Runs in the target's interpreter: `Surroundings` in the tests' process, `Surrounded` in the submission's. A
message about surroundings has the `environ` (new values by name, null if unset), the settings of the
`decimal` context, plain `values` of modules and classes by `module:name`, and the names of functions that are
`replaced`. A function that is replaced is not sent: it is reported if a call enters the one in its place.
"""

from __future__ import annotations

import decimal
import functools
import importlib
import os
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

ENTERED = "a function that the test has replaced: "
"""The beginning of a report on a function that is entered while a test has replaced it; its name follows."""
_SCALARS = frozenset((type(None), bool, int, float, str))
_MOST_VALUES = 500
_DECIMAL_SETTINGS = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
_OF_PYTEST = b"PYTEST_"
_ABSENT = object()
_VARARGS, _KEYWORDS = 4, 8


def _variables() -> dict[bytes, bytes]:
    """Return the environment without decoding it, which would take longer than the rest of a call."""
    found: Any = os.environ
    held: dict[bytes, bytes] = found._data
    return held


def shape_of(frame: types.FrameType) -> dict[str, Any]:
    """Return a stub's `module`, the `names` of its parameters, and the `shape` of its signature.

    The shape has the number of positional parameters, the names of keyword-only ones, and whether there are
    `*args` and `**kwargs`.
    """
    code = frame.f_code
    varargs, keywords = bool(code.co_flags & _VARARGS), bool(code.co_flags & _KEYWORDS)
    named = code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames[: named + varargs + keywords])
    shape = [code.co_argcount, names[code.co_argcount : named], varargs, keywords]
    return {"module": frame.f_globals.get("__name__", ""), "shape": shape, "names": names}


def _decimal_settings() -> list[Any]:
    context = decimal.getcontext()
    traps = sorted(trap.__name__ for trap, is_set in context.traps.items() if is_set)
    return [*(getattr(context, name) for name in _DECIMAL_SETTINGS), traps]


class Surroundings:
    """What tests have set or replaced in their process."""

    def __init__(self, is_of_tree: Callable[[types.ModuleType], bool]) -> None:
        self.is_of_tree = is_of_tree
        self.environ = dict(_variables())
        self.decimal = _decimal_settings()
        self.values: list[tuple[Any, str, object, str]] = []
        """Owner's dictionary, name, value after the import, and full name of each plain value of the tree."""
        self.modules: set[str] = set()
        self.patchers: Any = weakref.WeakSet()
        self.mocks: list[Any] = []

    def begin(self) -> None:
        """Begin a test: note the plain values of modules that were imported since the last one."""
        for name, module in list(sys.modules.items()):
            if name not in self.modules and type(module) is types.ModuleType:
                self.modules.add(name)
                if self.is_of_tree(module) and len(self.values) < _MOST_VALUES:
                    self.values += _plain_values(module)

    def found(self) -> dict[str, Any]:
        """Return the message about the surroundings of a call; empty if nothing was set or replaced."""
        settings = _decimal_settings()
        parts = {
            "environ": dict(self.changed_variables()),
            "decimal": settings if settings != self.decimal else None,
            "values": dict(self.changed_values()),
            "replaced": sorted(self.replaced()) if self.patchers or self.mocks else None,
        }
        return {name: part for name, part in parts.items() if part}

    def changed_variables(self) -> Iterator[tuple[str, str | None]]:
        now = _variables()
        for name in [*now, *(self.environ.keys() - now.keys())]:
            if self.environ.get(name) != now.get(name) and not name.startswith(_OF_PYTEST):
                yield os.fsdecode(name), os.environ.get(os.fsdecode(name))

    def changed_values(self) -> Iterator[tuple[str, object]]:
        for held, name, before, full_name in self.values:
            value = held.get(name, _ABSENT)
            if value is not before and type(value) in _SCALARS and value != before:
                yield full_name, value

    def replaced(self) -> set[str]:
        """Return the names of the functions that pytest's `monkeypatch` or a mock replaces now."""
        places = [place[:2] for patcher in self.patchers for place in patcher._setattr]
        places += [(mock.target, mock.attribute) for mock in self.mocks]
        return {f"{name}{attribute}" for owner, attribute in places for name in [_prefix(owner)] if name}

    def watch(self) -> None:
        """Take note of what `monkeypatch` and `unittest.mock` replace from now on."""
        import unittest.mock

        import _pytest.monkeypatch

        patcher: Any = _pytest.monkeypatch.MonkeyPatch
        _after(patcher, "__init__", self.patchers.add)
        mock: Any = unittest.mock._patch
        _after(mock, "__enter__", self.mocks.append)
        _after(mock, "__exit__", self.forget)

    def forget(self, mock: object) -> None:
        self.mocks[:] = [other for other in self.mocks if other is not mock]


def _after(kind: Any, name: str, note: Callable[[Any], object]) -> None:
    """Make a method of a class call `note` with the object after it returns."""
    method = getattr(kind, name)

    @functools.wraps(method)
    def noting(self: Any, *arguments: Any, **keywords: Any) -> Any:
        found = method(self, *arguments, **keywords)
        note(self)
        return found

    setattr(kind, name, noting)


def _prefix(owner: Any) -> str:
    """Return what precedes an attribute in its full name; empty for owners other than modules and classes."""
    if isinstance(owner, types.ModuleType):
        return f"{owner.__name__}:"
    return f"{owner.__module__}:{owner.__qualname__}." if isinstance(owner, type) else ""


def _plain_values(module: types.ModuleType) -> Iterator[tuple[Any, str, object, str]]:
    """Yield the plain values of a module and of the classes that it defines."""
    owners: list[Any] = [module]
    owners += [part for part in vars(module).values() if isinstance(part, type)]
    for owner in owners:
        is_own = owner is module or owner.__module__ == module.__name__
        for name, value in list(vars(owner).items()) if is_own else ():
            if type(value) in _SCALARS and not name.startswith("__"):
                yield vars(owner), name, value, f"{_prefix(owner)}{name}"


class Surrounded:
    """A block in which the submission's process has the surroundings in a message."""

    def __init__(self, message: dict[str, Any] | None) -> None:
        self.message = message or {}
        self.entered: set[str] = set()
        """Reports on functions that were entered although the test has replaced them."""
        self.before: list[Callable[[], object]] = []
        """What sets everything back, in reverse order."""

    def __enter__(self) -> Surrounded:
        for name, value in self.message.get("environ", {}).items():
            self.set_variable(name, value)
        if self.message.get("decimal"):
            context = decimal.getcontext()
            self.before.append(functools.partial(decimal.setcontext, context))
            decimal.setcontext(_decimal_context(*self.message["decimal"]))
        for name, value in self.message.get("values", {}).items():
            self.replace(name, functools.partial(_instead, value))
        for name in self.message.get("replaced", ()):
            self.replace(name, functools.partial(self.noting, name))
        return self

    def __exit__(self, *_: object) -> None:
        for set_back in reversed(self.before):
            set_back()

    def set_variable(self, name: str, value: str | None) -> None:
        held = os.environ.get(name)
        self.before.append(functools.partial(_set_variable, name, held))
        _set_variable(name, value)

    def replace(self, full_name: str, made: Callable[[Any], Any]) -> None:
        """Replace the value of a full name by what is made of it; do nothing if there is no such name."""
        module, _, path = full_name.partition(":")
        *above, name = path.split(".")
        try:
            owner: Any = importlib.import_module(module)
            for part in above:
                owner = getattr(owner, part)
            held = vars(owner)[name]
            setattr(owner, name, made(held))
        except Exception:  # the tree decides about its imports and classes
            return
        self.before.append(functools.partial(setattr, owner, name, held))

    def noting(self, full_name: str, held: Any) -> Any:
        """Return a function in the place of `held` that reports its name and calls it; others unchanged."""
        if isinstance(held, (staticmethod, classmethod)):
            return type(held)(self.noting(full_name, held.__func__))
        if isinstance(held, property) and held.fget is not None:
            return property(self.noting(full_name, held.fget), held.fset, held.fdel)
        if not isinstance(held, (types.FunctionType, types.BuiltinFunctionType)):
            return held

        @functools.wraps(held)
        def noting(*arguments: Any, **keywords: Any) -> Any:
            self.entered.add(f"{ENTERED}{full_name}")
            return held(*arguments, **keywords)

        return noting


def _instead(value: object, _: object) -> object:
    return value


def _set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _decimal_context(*settings: Any) -> decimal.Context:
    given = dict(zip(_DECIMAL_SETTINGS, settings))  # noqa: B905 - Python 3.9
    return decimal.Context(**given, traps=[getattr(decimal, name) for name in settings[-1]])

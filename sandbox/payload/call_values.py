"""Pickles arguments of recorded calls, including functions that can't be found by name in a module.

Runs in the target's interpreter. A lambda, or a function defined in a test, is kept as its code and its
closure, and gets the globals of its module again; a bound method is kept with its object, and a sentinel by
its name in a module. Only the interpreter that made a pickle can read it. Within an argument, an `Absent`
replaces what can't be pickled, and a new lock replaces a lock (decision 131).
"""

from __future__ import annotations

import copyreg
import importlib
import io
import marshal
import pickle
import sys
import threading
import types
import weakref
from typing import Any

_LOCKS: dict[Any, Any] = {type(threading.Lock()): "Lock", type(threading.RLock()): "RLock"}
_WITH_MEMBERS = 5
"""The length of the tuple to which an object of a class that extends `list` or `dict` is reduced."""
_HEAP_TYPE = 1 << 9
"""The flag of a class that was made while the program ran."""
_BY_NAME = (type, types.FunctionType, types.BuiltinFunctionType)
"""The classes of objects that a pickle refers to by their own names."""
_NAME = "gistpoint_values"
"""The name of this module in the run, by which pickles refer to its functions."""


class Absent:
    """A stand-in for something that could not be pickled; a call that uses it raises an exception."""


class _ByValue(pickle.Pickler):
    absent = 0
    """The number of objects that could not be pickled."""

    def reducer_override(self, value: Any) -> Any:
        """Return how to rebuild an object that pickle can't store, such as a lock; else `NotImplemented`."""
        if isinstance(value, types.ModuleType):
            return importlib.import_module, (value.__name__,)
        if type(value) is types.FunctionType and not _is_found(value):
            closure = value.__closure__ or ()
            made = (marshal.dumps(value.__code__), value.__module__, value.__name__, len(closure))
            return made_function, made, _state(value, closure), None, None, set_state
        if type(value) is types.MethodType:
            return made_method, (value.__func__, value.__self__)
        if type(value) in _LOCKS:
            return getattr(threading, _LOCKS[type(value)]), ()
        if type(value) is weakref.ref and value() is not None:
            return weakref.ref, (value(),)
        is_kept = _can_be_pickled(value)
        if not is_kept or _is_bare(value):
            # A sentinel: a copy would not be the object that the code compares it with.
            name = _name_in_module(value)
            if name is not None:
                return named_object, name
        if not is_kept:
            self.absent += 1
            return Absent, ()
        if isinstance(value, (list, dict)) and type(value).__reduce__ is object.__reduce__:
            return _without_methods(value)
        return NotImplemented


def _without_methods(value: Any) -> Any:
    """Return how to rebuild an object of a subclass of `list` or `dict`; `NotImplemented` for others.

    A pickle would call methods of the class for each member, which may need attributes that come later.
    """
    made = value.__reduce_ex__(2)
    if len(made) != _WITH_MEMBERS or type(value) in (list, dict):
        return NotImplemented
    make, arguments, state, members, pairs = made
    return make, arguments, (state, list(members or ()), list(pairs or ())), None, None, set_contents


def set_contents(value: Any, contents: tuple[Any, list[Any], list[Any]]) -> None:
    """Give a new object of a class that extends `list` or `dict` its attributes and members."""
    state, members, pairs = contents
    if hasattr(value, "__setstate__"):
        value.__setstate__(state)
    else:
        for held in state if isinstance(state, tuple) else (state,):
            for name, part in (held or {}).items():
                object.__setattr__(value, name, part)
    if members:
        list.extend(value, members)
    for key, part in pairs:
        dict.__setitem__(value, key, part)


def _can_be_pickled(value: Any) -> bool:
    """Whether an object itself can be pickled, apart from the objects that it refers to."""
    if isinstance(value, _BY_NAME):
        return _is_found(value) or not isinstance(value, type)
    try:
        _reduce(value)
    except Exception:
        return False
    # Built-in classes without a name, such as iterators of lists, are reduced to calls to others.
    return not type(value).__flags__ & _HEAP_TYPE or _is_found(type(value))


def _is_bare(value: Any) -> bool:
    """Whether an object has nothing but its identity, such as `object()`."""
    if isinstance(value, _BY_NAME) or type(value) in copyreg.dispatch_table:
        return False
    made = value.__reduce_ex__(4)
    return isinstance(made, tuple) and made[1:2] == ((type(value),),) and not any(made[2:])


_names: dict[int, tuple[str, str]] = {}
_modules_seen = 0


def _name_in_module(value: Any) -> tuple[str, str] | None:
    """Return a module and the name that an object has in it; None if the object has no such name."""
    global _modules_seen
    if len(sys.modules) != _modules_seen:
        _modules_seen = len(sys.modules)
        for module_name, module in list(sys.modules.items()):
            for name, held in list(getattr(module, "__dict__", {}).items()):
                _names.setdefault(id(held), (module_name, name))
    found = _names.get(id(value))
    if found is None or getattr(sys.modules.get(found[0]), found[1], None) is not value:
        return None
    return found


def _reduce(value: Any) -> None:
    """Raise the error from pickling an object itself, if any, without the objects that it refers to."""
    if type(value) not in copyreg.dispatch_table:
        value.__reduce_ex__(4)


def _is_found(function: Any) -> bool:
    module = sys.modules.get(function.__module__)
    found: Any = module
    try:
        for part in function.__qualname__.split("."):
            found = getattr(found, part)
    except AttributeError:
        return False
    return found is function


def _state(function: Any, closure: tuple[Any, ...]) -> dict[str, Any]:
    cells = []
    for cell in closure:
        try:
            # A list with the content, or an empty list, because None is a possible content.
            cells.append([cell.cell_contents])
        except ValueError:  # the cell is still empty
            cells.append([])
    return {
        "cells": cells,
        "defaults": function.__defaults__,
        "keyword_defaults": function.__kwdefaults__,
        "qualname": function.__qualname__,
        "dict": function.__dict__,
    }


def made_function(code: bytes, module: str, name: str, cells: int) -> Any:
    """Return a new function of a module, whose cells are still empty."""
    names = importlib.import_module(module).__dict__
    return types.FunctionType(
        marshal.loads(code), names, name, None, tuple(types.CellType() for _ in range(cells))
    )


def made_method(function: Any, owner: Any) -> Any:
    """Return a function as a method of an object; a private name would not lead to it."""
    return types.MethodType(function, owner)


def named_object(module: str, name: str) -> Any:
    """Return an object by its name in a module."""
    return getattr(importlib.import_module(module), name)


def set_state(function: Any, state: dict[str, Any]) -> None:
    """Give a new function the contents of its cells, its defaults and its attributes."""
    for cell, content in zip(function.__closure__ or (), state["cells"]):  # noqa: B905 - Python 3.9
        if content:
            cell.cell_contents = content[0]
    function.__defaults__, function.__kwdefaults__ = state["defaults"], state["keyword_defaults"]
    function.__qualname__ = state["qualname"]
    function.__dict__.update(state["dict"])


def dumps(values: list[Any]) -> tuple[bytes, int]:
    """Return the values as a pickle, and the number of objects within them that an `Absent` replaces.

    Raises the error of pickling if one of the values itself can't be pickled.
    """
    for own in (made_function, made_method, named_object, set_state, set_contents, Absent):
        own.__module__ = _NAME
    for value in values:
        # Without the argument itself, there would be nothing to compare.
        if not isinstance(value, (type, types.FunctionType, types.ModuleType)):
            _reduce(value)
    out = io.BytesIO()
    pickler = _ByValue(out, 4)
    pickler.dump(values)
    return out.getvalue(), pickler.absent

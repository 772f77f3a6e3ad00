"""Pickles arguments of recorded calls, including functions that can't be found by name in a module.

Runs in the target's interpreter. A lambda, or a function defined in a test, is kept as its code and what it
closes over, and gets the globals of its module again. Only the interpreter that made a pickle can read it.
"""

from __future__ import annotations

import importlib
import io
import marshal
import pickle
import sys
import types
from typing import Any

_NAME = "gistpoint_values"
"""The name of this module in the run, by which pickles refer to its functions."""


class _ByValue(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Return how to rebuild a module, or a function that can't be found by name."""
        if isinstance(value, types.ModuleType):
            return importlib.import_module, (value.__name__,)
        if type(value) is types.FunctionType and not _is_found(value):
            closure = value.__closure__ or ()
            made = (marshal.dumps(value.__code__), value.__module__, value.__name__, len(closure))
            return made_function, made, _state(value, closure), None, None, set_state
        return NotImplemented


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


def set_state(function: Any, state: dict[str, Any]) -> None:
    """Give a new function the contents of its cells, its defaults and its attributes."""
    for cell, content in zip(function.__closure__ or (), state["cells"]):  # noqa: B905 - Python 3.9
        if content:
            cell.cell_contents = content[0]
    function.__defaults__, function.__kwdefaults__ = state["defaults"], state["keyword_defaults"]
    function.__qualname__ = state["qualname"]
    function.__dict__.update(state["dict"])


def dumps(values: Any) -> bytes:
    """Return the values as a pickle."""
    for own in (made_function, set_state):
        own.__module__ = _NAME
    out = io.BytesIO()
    _ByValue(out, 4).dump(values)
    return out.getvalue()

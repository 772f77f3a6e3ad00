"""Finds the original function beneath its decorators; runs in the target's interpreter."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from typing import Any

_LINKS = ("fget", "fset", "fdel", "__func__", "__wrapped__", "func")


def the_function(module: Any, qualname: str, path: str) -> Any:
    """Return the function with this name in this file; `name#2` is the second with that name, if any.

    If there are fewer, the last one is returned. `path` is relative to the repository. Raises
    `AttributeError` if the module has no such name, and `LookupError` if no function is found.
    """
    plain, _, number = qualname.partition("#")
    *outer, name = plain.split(".")
    holder: Any = module
    for part in outer:
        holder = getattr(holder, part)
    found = sorted(
        # Sorted by line, because wrappers are found in the order of their nesting.
        _below(_member(holder, name), name, path),
        key=lambda function: function.__code__.co_firstlineno,
    )
    if not found:
        raise LookupError(f"{qualname} is not a function that can be called on its own.")
    return found[min(int(number or 1), len(found)) - 1] if number else found[0]


def _member(holder: Any, name: str) -> Any:
    """Return the value of a name in a module or class; a private name may be stored mangled."""
    try:
        return inspect.getattr_static(holder, name)
    except AttributeError:
        return inspect.getattr_static(holder, f"_{getattr(holder, '__name__', '').lstrip('_')}{name}")


def _below(found: Any, name: str, path: str) -> Iterator[Any]:
    """Yield the functions of this name that an object wraps, including the object itself."""
    queue, seen = [found], set()
    while queue:
        item = queue.pop(0)
        if item is None or id(item) in seen:
            continue
        seen.add(id(item))
        code = getattr(item, "__code__", None)
        if (
            code is not None
            and code.co_name == name
            and os.path.realpath(code.co_filename).endswith(os.sep + path)
        ):
            yield item
            continue
        queue += [getattr(item, link, None) for link in _LINKS]
        queue += _closed_over(item)


def _closed_over(item: Any) -> list[Any]:
    found = []
    for cell in getattr(item, "__closure__", None) or ():
        try:
            inside = cell.cell_contents
        except ValueError:
            continue
        if callable(inside):
            found.append(inside)
    return found

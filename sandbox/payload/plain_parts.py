"""Reads the contents of objects of built-in types, and of types that extend these, without their methods.

Runs in the target's interpreter (decision 113).
"""

from __future__ import annotations

import base64
import collections
import json
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or "." in __name__:
    from gistpoint.sandbox.payload import plain_sides as sides
else:
    import gistpoint_sides as sides


def builtin_base(kind: type) -> type:
    """Return the nearest built-in class that an exception class extends, or the class itself."""
    return next(part for part in sides.mro_of(kind) if part.__module__ == "builtins")


def names_file(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.filename is not None


def arguments_of(error: Any) -> tuple[Any, ...]:
    """Return the arguments of an exception; an `OSError` keeps the name of a file outside of `args`."""
    return (*error.args, error.filename) if names_file(error) and len(error.args) == 2 else error.args


def ordered(parts: list[Any]) -> list[Any]:
    return sorted(parts, key=json.dumps)


# The methods of the built-in types, never those of the object's own class, which may do anything.
PLAIN_VALUES: dict[Any, Callable[[Any], object]] = {
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    int: lambda value: int.__add__(value, 0),
    float: lambda value: float.__add__(value, 0.0),
    complex: lambda value: complex(float(complex.real.__get__(value)), float(complex.imag.__get__(value))),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
}
"""Functions that return an object's value as its immutable built-in base class, by that class."""
BASE_CONTENTS: dict[Any, Callable[[Any, Any], Any]] = {
    dict: lambda encoder, value: encoder.pairs(dict.items(value)),
    list: lambda encoder, value: encoder.parts(list.__iter__(value)),
    set: lambda encoder, value: ordered(encoder.parts(set.__iter__(value))),
    collections.deque: lambda encoder, value: encoder.parts(collections.deque.__iter__(value)),
    bytearray: lambda encoder, value: base64.b64encode(
        bytes(bytearray.__getitem__(value, slice(None)))
    ).decode("ascii"),
}
"""Functions that return the contents of an object, by its mutable built-in base class."""


def is_same_function(one: Any, other: Any) -> bool:
    """Whether two functions are the same, as far as they are sent, whatever may take their places."""
    if type(one) is not list or type(other) is not list:
        return one is other is None
    is_partial = one[0] == other[0] == "p"
    return is_partial or all(first == second for first, second in zip(one, other))  # noqa: B905 - Python 3.9


def pattern(text: Any, flags: int) -> re.Pattern[Any]:
    """Return a pattern, without the warnings and the output that compiling it may cause."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(text, flags & ~re.DEBUG)


def _fill_set(decoder: Any, target: Any, contents: Any) -> None:
    set.clear(target)
    set.update(target, decoder.parts(contents))


def _fill_deque(decoder: Any, target: Any, contents: Any) -> None:
    collections.deque.clear(target)
    collections.deque.extend(target, decoder.parts(contents))


BASE_FILLERS: dict[str, Callable[[Any, Any, Any], None]] = {
    "dict": lambda decoder, target, contents: sides.refill_dict(dict, target, decoder.pairs(contents)),
    "list": lambda decoder, target, contents: list.__setitem__(target, slice(None), decoder.parts(contents)),
    "bytearray": lambda decoder, target, contents: bytearray.__setitem__(
        target, slice(None), base64.b64decode(contents)
    ),
    "set": _fill_set,
    "deque": _fill_deque,
}
"""Functions that fill an object of a class that extends a built-in type, by the name of that type."""

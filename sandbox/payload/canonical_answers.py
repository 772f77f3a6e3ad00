"""Describes answers by strings that are the same for equal values in any process.

Runs in the target's interpreter. A value is described by its contents, never by its own `repr` alone; what
only a name or an address would describe can't be compared (decision 196).
"""

from __future__ import annotations

import enum
import hashlib
import inspect
import itertools
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

DEPTH = 8
ITEMS = 2_000
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_SCALARS: tuple[Any, ...] = (int, float, str, bytes)
_PLAIN: tuple[Any, ...] = (dict, list, tuple, set, frozenset)
_CONTENTS: dict[Any, Callable[[Any], Any]] = {
    re.Match: lambda value: [value.string, value.regs, value.groupdict()],
    types.MappingProxyType: dict,
    memoryview: lambda value: [value.format, value.shape, value.tobytes()],
    type({}.keys()): list,
    type({}.values()): list,
    type({}.items()): list,
}
"""Functions that return the contents of a value of the standard library that can't be pickled."""
_WITH_NAMES = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
)
_HEAP_TYPE = 1 << 9
"""The flag of a class that was made while the program ran."""


class ExtendedText(str):
    """A string of a class that extends `str`."""


class ExtendedNumber(int):
    """A whole number of a class that extends `int`."""


class ExtendedFloat(float):
    """A float of a class that extends `float`."""


class ExtendedBytes(bytes):
    """Bytes of a class that extends `bytes`."""


class ExtendedList(list):  # type: ignore[type-arg]
    """A list of a class that extends `list`."""


class ExtendedTuple(tuple):  # type: ignore[type-arg]
    """A tuple of a class that extends `tuple`."""


class ExtendedDictionary(dict):  # type: ignore[type-arg]
    """A dictionary of a class that extends `dict`."""


EXTENDED: dict[Any, Any] = {
    str: ExtendedText,
    int: ExtendedNumber,
    float: ExtendedFloat,
    bytes: ExtendedBytes,
    list: ExtendedList,
    tuple: ExtendedTuple,
    dict: ExtendedDictionary,
}
_EXTENDING: dict[Any, Any] = {kind: plain for plain, kind in EXTENDED.items()}


class Unequal(Exception):
    """A value has no string form that equal values share."""


GIVEN: set[int] = set()
"""Ids of functions among a call's arguments; a function that the call itself makes can't be compared."""


class Made:
    """A switch: whether the functions and classes that a call makes are compared by their names."""

    by_name = False


def class_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _is_made(value: Any) -> bool:
    """Whether a value is a function or class that the call made itself; its name would not tell it apart."""
    if Made.by_name:
        return False
    if isinstance(value, type):
        return bool(value.__flags__ & _HEAP_TYPE) and not _has_its_name(value)
    if type(value) is not types.FunctionType or id(value) in GIVEN:
        return False
    return value.__closure__ is not None or "<locals>" in value.__qualname__


def _has_its_name(kind: type) -> bool:
    """Whether a class is what its module has under its name."""
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = inspect.getattr_static(found, name, None)
    return found is kind


def canonical(value: Any, depth: int, above: tuple[int, ...]) -> str:
    """Return a string that is the same for equal values in any process. Raises `Unequal` if there is none.

    Up to `ITEMS` items of an iterator are taken from it.
    """
    kind = type(value)
    if kind in _EXTENDING:
        # This program gave the argument its class, so it does not matter whether an answer still has that
        # class.
        return canonical(_EXTENDING[kind](value), depth, above)
    if value is None or kind in (bool, int, float, complex, str, bytes):
        return repr(value)
    if id(value) in above:
        return "<again>"
    if depth > DEPTH:
        return "<deeper>"
    inner = (*above, id(value))
    if kind in _PLAIN:
        return _container(value, depth, inner)
    if isinstance(value, _WITH_NAMES):
        return _of_its_name(value, depth, inner)
    if isinstance(value, BaseException):
        held = _attributes(value, depth, inner)
        return f"{class_name(kind)}{canonical(value.args, depth + 1, inner)}{held and f' with {held}'}"
    if kind in _CONTENTS:
        return f"{class_name(kind)}{canonical(_CONTENTS[kind](value), depth + 1, inner)}"
    if hasattr(value, "__next__") or (isinstance(value, types.AsyncGeneratorType) and not Made.by_name):
        return f"<yields {', '.join(canonical(part, depth + 1, inner) for part in _first_items(value))}>"
    return f"{class_name(kind)}({_state(value, depth, inner)})"


def _of_its_name(value: Any, depth: int, above: tuple[int, ...]) -> str:
    """Return a string for a function, method, class or module, which its name describes if it has one."""
    if _is_made(value):
        raise Unequal
    if isinstance(value, (types.MethodType, types.BuiltinFunctionType)) and _is_bound(value):
        return f"<{value.__qualname__} of {canonical(value.__self__, depth + 1, above)}>"
    return _named(value)


def _is_bound(value: Any) -> bool:
    """Whether a method has an object; a function of a built-in module has the module instead."""
    return value.__self__ is not None and not isinstance(value.__self__, types.ModuleType)


def _named(value: Any) -> str:
    """Return a string for a module, a function or a class that has a name.

    All lambdas of a module have one name, so a digest of the code is added.
    """
    name = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}"
    code = getattr(value, "__code__", None)
    if not name.endswith("<lambda>") or code is None or Made.by_name:
        return f"<{name}>"
    constants = [part for part in code.co_consts if not isinstance(part, types.CodeType)]
    text = repr((code.co_code, code.co_names, code.co_varnames, constants))
    return f"<{name} {hashlib.sha256(text.encode('utf-8', 'backslashreplace')).hexdigest()[:12]}>"


def _first_items(value: Any) -> list[Any]:
    """Return the items of an iterator, at most `ITEMS`, because an iterator may be endless."""
    if hasattr(value, "__next__"):
        return list(itertools.islice(value, ITEMS))

    async def collected() -> Any:
        found: Any = []
        async for part in value:
            found.append(part)
            if len(found) == ITEMS:
                break
        return found

    import asyncio

    items: list[Any] = asyncio.run(collected())
    return items


def _container(value: Any, depth: int, above: tuple[int, ...]) -> str:
    if type(value) is dict:
        pairs = [
            f"{canonical(k, depth + 1, above)}: {canonical(v, depth + 1, above)}" for k, v in value.items()
        ]
        return f"{{{', '.join(sorted(pairs))}}}"
    parts = [canonical(part, depth + 1, above) for part in value]
    if type(value) in (list, tuple):
        return ("[%s]" if type(value) is list else "(%s)") % ", ".join(parts)
    return f"{type(value).__name__}({', '.join(sorted(parts))})"


def _state(value: Any, depth: int, above: tuple[int, ...]) -> str:
    """Return a string for the value of a built-in type that an object extends, and for its attributes."""
    if isinstance(value, enum.Enum):
        # Not its attributes, in which the class keeps what it has computed.
        return canonical(value._value_, depth + 1, above)
    parts = [_built_in_value(value, depth, above), _attributes(value, depth, above)]
    return "; ".join(filter(None, parts)) or _reduced(value, depth, above)


def _built_in_value(value: Any, depth: int, above: tuple[int, ...]) -> str:
    """Return a string for the value of the built-in type that the object's class extends; empty if none.

    The methods of the built-in type are called, not those with which the class may replace them.
    """
    scalar_type = _extended(value, _SCALARS)
    if scalar_type is not None:
        text: str = scalar_type.__repr__(value)
        return text
    container_type = _extended(value, _PLAIN)
    if container_type is None:
        return ""
    items: Any = dict.items(value) if container_type is dict else container_type.__iter__(value)
    return _container(container_type(items), depth, above)


def _extended(value: Any, kinds: tuple[Any, ...]) -> Any:
    """Return the first of these types that the object is an instance of; None if there is none."""
    return next((kind for kind in kinds if isinstance(value, kind)), None)


def _reduced(value: Any, depth: int, above: tuple[int, ...]) -> str:
    """Return a string for what a pickle of an object without attributes would contain, or for its `repr`."""
    try:
        made = value.__reduce_ex__(4)
    except Exception:
        text = repr(value)
        if depth == 0 and _ADDRESS.search(text):
            # Such a string does not show the contents, so it would make any two answers of the class equal.
            raise Unequal from None
        # Equal objects of two processes have different addresses.
        return _ADDRESS.sub("", text)
    if isinstance(made, str):
        return made
    # The class is known by its name, even if that is bound to something else.
    arguments = [part for part in made[1] if part is not type(value)]
    return ", ".join(canonical(part, depth + 1, above) for part in (arguments, *made[2:]))


def _attributes(value: Any, depth: int, above: tuple[int, ...]) -> str:
    own = getattr(value, "__dict__", None)
    held = {name: getattr(value, name, None) for kind in type(value).__mro__ for name in _slots(kind)}
    held.update(own if isinstance(own, dict) else {})
    return ", ".join(f"{name}={canonical(held[name], depth + 1, above)}" for name in sorted(held))


def _slots(kind: type) -> list[str]:
    named = kind.__dict__.get("__slots__", ())
    found = [named] if isinstance(named, str) else list(named)
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def functions_in(value: Any, depth: int) -> Iterator[int]:
    if type(value) is types.FunctionType:
        yield id(value)
    elif depth < DEPTH and isinstance(value, (list, tuple, set, frozenset, dict)):
        for part in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from functions_in(part, depth + 1)
    elif depth < DEPTH and isinstance(getattr(value, "__dict__", None), dict):
        yield from functions_in(vars(value), depth + 1)

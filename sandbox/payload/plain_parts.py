"""Reads the contents of objects of built-in types, and of types that extend these, without their methods.

Runs in the target's interpreter (decision 113).
"""

from __future__ import annotations

import base64
import builtins
import collections
import gc
import json
import math
import re
import types
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
    """Return the arguments that make an exception: some are kept outside of `args`.

    These are the file's name of an `OSError`, and the exceptions of a group, whatever its `args` are later.
    """
    if _is_group(error):
        return error.message, tuple(error.exceptions)
    return (*error.args, error.filename) if names_file(error) and len(error.args) == 2 else error.args


def has_own_arguments(error: BaseException) -> bool:
    """Whether an exception's `args` must stay as its class sets them."""
    return names_file(error) or _is_group(error)


def _is_group(error: BaseException) -> bool:
    return isinstance(error, getattr(builtins, "BaseExceptionGroup", ()))


def parts_of(error: BaseException) -> dict[str, object]:
    """Return what a built-in exception holds, by name, where its arguments imply something else."""
    names = _places_of(type(error))
    held = {name: _read(place, error) for name, place in names.items()}
    usual = _usual(error, names) if held else {}
    return {name: part for name, part in held.items() if not sides.same_plain(usual[name], part)}


def without_parts(kind: type, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an exception that it does not hold in the places of a built-in class."""
    names = _places_of(kind)
    return {name: part for name, part in attributes.items() if name not in names}


def fill_parts(decoder: Any, target: BaseException, attributes: dict[str, Any], changed: bool) -> None:
    """Give an exception what it holds besides its arguments: `attributes`, or what the arguments imply."""
    names = _places_of(type(target))
    for name, usual in _usual(target, names).items() if names else ():
        wanted = decoder.value(attributes[name]) if name in attributes else usual
        is_same = sides.same_plain(_read(names[name], target), wanted)
        if is_same or not _may_write(decoder, target, name, changed):
            continue
        try:
            names[name].__set__(target, wanted)
        except (AttributeError, TypeError) as error:
            raise sides.CannotTravelError(f"{name} of an exception can't be set: {error}") from None


def _usual(error: BaseException, names: dict[str, Any]) -> dict[str, object]:
    """Return what an exception with the same arguments holds in these places."""
    kind: Any = builtin_base(type(error))
    try:
        made = kind(*arguments_of(error))
    except TypeError:
        made = kind.__new__(kind)
    return {name: _read(place, made) for name, place in names.items()}


def _read(place: Any, error: BaseException) -> object:
    try:
        return place.__get__(error)
    except (AttributeError, TypeError):  # it is unset
        return None


_PLACES: dict[type, dict[str, Any]] = {}
_SENT_OTHERWISE = frozenset(("name", "path", "obj", "name_from", "message", "exceptions"))
"""What is sent as an attribute or argument, or is set by Python itself where it raises an exception."""


def _places_of(kind: type) -> dict[str, Any]:
    """Return the descriptors of what built-in exceptions hold besides their arguments, by name."""
    if kind not in _PLACES:
        builtin = [part for part in sides.mro_of(kind) if part.__module__ == "builtins"]
        _PLACES[kind] = {
            name: place
            for part in builtin[: builtin.index(BaseException)]
            for name, place in vars(part).items()
            if type(place) in _DESCRIPTORS and name not in _SENT_OTHERWISE and name[:2] != "__"
        }
    return _PLACES[kind]


_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)


def arguments_of_value(value: Any) -> tuple[Any, ...]:
    """Return the arguments that make a value of the standard library."""
    # Only this protocol tells which of two equal times it is (`fold`).
    reduced = value.__reduce_ex__(4) if hasattr(value, "fold") else value.__reduce__()
    return tuple(reduced[1])


def viewed(view: Any) -> Any:
    """Return the dictionary behind a view or a mapping proxy, or a copy if nobody may fill it."""
    held: Any = next((part for part in gc.get_referents(view) if isinstance(part, dict)), view)
    may_be_filled = type(held) in sides.NODE_KINDS and "__module__" not in held
    return held if may_be_filled else dict(held)


_SCALARS = (type(None), bool, int, float, str)
_MOST_CONTEXTS = 5


def context_of(encoder: Any, error: BaseException) -> list[Any] | None:
    """Return the JSON form of an exception's context: whether it is suppressed, and the exceptions in it.

    None if there is none. A context whose object both sides know is a reference. Others are rebuilt from the
    class and the plain arguments, because whatever else they hold might not travel, and nobody reads it.
    """
    chain: list[Any] = []
    held = error.__context__
    while held is not None and len(chain) < _MOST_CONTEXTS:
        if id(held) in encoder.side.kept_numbers or id(held) in encoder.shared.numbers:
            chain.append(encoder.reference(held))
            break
        chain.append(_summary(encoder, held))
        held = held.__context__
    return [error.__suppress_context__, chain] if chain or error.__suppress_context__ else None


def _summary(encoder: Any, error: BaseException) -> list[Any]:
    kind = type(error)
    base = builtin_base(kind)
    name = sides.type_name(kind if encoder.side.visible(kind) else base)
    plain = error.args if all(type(part) in _SCALARS for part in error.args) else ()
    return ["c", name, base.__name__, encoder.value(plain, 1)]


def fill_cause(decoder: Any, target: Any, cause: Any, changed: bool) -> None:
    """Give an exception the cause that it has on the other side."""
    if target.__cause__ is not cause and _may_write(decoder, target, "__cause__", changed):
        target.__cause__ = cause


def fill_context(decoder: Any, target: Any, context: Any, changed: bool) -> None:
    """Give an exception the context that it has on the other side.

    If this side had the exception before (`changed`), a context that it has here is kept.
    """
    is_suppressed, chain = context or (False, ())
    if type(is_suppressed) is not bool or len(chain) > _MOST_CONTEXTS:
        raise sides.CannotTravelError("the context of an exception is malformed")
    has_own_context = changed and target.__context__ is not None
    if has_own_context:
        chain = ()
    if chain and _may_write(decoder, target, "__context__", changed):
        link = target
        for part in chain:
            link.__context__ = _context(decoder, part)
            link = link.__context__
    if target.__suppress_context__ != is_suppressed and _may_write(
        decoder, target, "__suppress_context__", changed
    ):
        target.__suppress_context__ = is_suppressed


def _context(decoder: Any, part: list[Any]) -> BaseException:
    """Return an exception in a context, without its own context. Raises `CannotTravelError` for others."""
    if part[0] != "c":
        found = decoder.value(part)
        if not isinstance(found, BaseException):
            raise sides.CannotTravelError("the context of an exception is not an exception")
        return found
    _, name, base, given = part
    kind = decoder.side.context_named(name, base)
    made: BaseException = builtin_base(kind).__new__(kind)  # type: ignore[call-overload]
    made.args = decoder.value(given)
    return made


def _may_write(decoder: Any, target: object, name: str, changed: bool) -> bool:
    key = f"{sides.type_name(type(target))}.{name}"
    return not changed or bool(decoder.side.may_write(target, key, new=False))


def nan_text(value: float) -> str:
    """Return the text of a NaN with its sign, which `float.hex` leaves out."""
    return "nan" if math.copysign(1, value) > 0 else "-nan"


def text(value: str) -> Any:
    """Return the JSON form of a string: JSON would read two surrogates in a row as one character."""
    if value.isascii() or not _PAIR.search(value):
        return value
    return ["u", base64.b64encode(value.encode("utf-32-le", "surrogatepass")).decode("ascii")]


def text_of(encoded: str) -> str:
    """Return a string with surrogates from its JSON form."""
    return base64.b64decode(encoded).decode("utf-32-le", "surrogatepass")


_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


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


def factory(decoder: Any, value: Any) -> Any:
    """Return the function with which a `defaultdict` makes missing values, from its JSON form."""
    name = value[1] if type(value) is list and len(value) > 1 and value[0] == "n" else None
    if type(name) is str and name in sides.FACTORIES:
        return sides.FACTORIES[name]
    number, node = _function_elsewhere(decoder, value)
    if node and node[0] == "function" and number not in decoder.side.kept:
        decoder.side.keep(decoder.side.factory(number, node), number)
    return decoder.value(value)


def _function_elsewhere(decoder: Any, value: Any) -> tuple[int, Any]:
    """Return the number and the node of a function that stays on the other side, or of a substitute."""
    last: Any = value[-1] if type(value) is list and value else None
    is_substitute = type(last) is list and len(last) > 2 and last[0] == "a"
    if is_substitute and type(last[1]) is int:
        return last[1], last[2:]
    if type(last) is int and value[0] == "#":
        return last, decoder.heap.get(last)
    return 0, None


def fill_factory(decoder: Any, target: collections.defaultdict[Any, Any], known: Any, value: Any) -> None:
    """Give a `defaultdict` the factory that it has on the other side; `known` is the form of its own."""
    # Not decoded again if it is the same: a partial would be another one, and a name might be refused.
    if not is_same_function(known, value):
        target.default_factory = factory(decoder, value)


def pattern(text: Any, flags: int) -> re.Pattern[Any]:
    """Return a pattern, without the warnings and the output that compiling it may cause."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(text, flags & ~re.DEBUG)


def all_members(found: Any, sent: Any) -> Any:
    """Return a new collection; raise `CannotTravelError` if equal members became one."""
    # On the other side, they were different when they were added.
    if len(found) != len(sent):
        raise sides.CannotTravelError("a collection has equal members")
    return found


def _fill_set(decoder: Any, target: Any, contents: Any) -> None:
    set.clear(target)
    set.update(target, decoder.parts(contents))
    all_members(target, contents)


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

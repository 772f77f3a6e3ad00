"""Reads, changes and shows encoded values, in the form that `payload/call_replayer.py` describes.

Nothing of a repository may be unpickled outside the sandbox, so inputs are made from encoded values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from gistpoint.sandbox.equivalence import tags

_Item = TypeVar("_Item")
Encoded = list[Any]
"""An encoded value: its tag, and its content."""
_PLAIN_OBJECT = 4
"""The length of an encoded object without its attributes."""
_VARIED_OBJECT = 6
"""The length of an encoded object that serves as an example: it also has all attributes, and those set."""
_BRACKETS = {
    tags.LIST: ("[", "]"),
    tags.TUPLE: ("(", ")"),
    tags.SET: ("{", "}"),
    tags.FROZENSET: ("frozenset({", "})"),
}
_EMPTY = {tags.SET: "set()", tags.FROZENSET: "frozenset()"}
"""The notation of empty containers whose brackets alone mean another type: `{}` is a dictionary."""


def spread(values: Sequence[_Item], most: int) -> Sequence[_Item]:
    """Return at most `most` of the values, evenly spread over them."""
    if len(values) <= most:
        return values
    return [values[place * len(values) // most] for place in range(most)]


def attributes_of(value: Encoded) -> list[list[Any]]:
    """Return the pairs of names and encoded values of an object's attributes.

    The result is empty if the object has none, and for any other value.
    """
    is_described = value[0] == tags.OBJECT and len(value) > _PLAIN_OBJECT
    return value[_PLAIN_OBJECT] if is_described else []


def members(value: Encoded) -> list[Encoded]:
    """Return the encoded values directly inside a value, except attributes; empty if there are none."""
    match value[0]:
        case tags.DICTIONARY:
            return [part for pair in value[1] for part in pair]
        case tags.EXACT:
            return list(value[2])
        case tags.SUBCLASS:
            return [value[1]]
        case kind if kind in tags.CONTAINERS:
            return list(value[1])
    return []


def part_at(value: Encoded, step: int | str) -> Encoded | None:
    """Return the member at a place, or the attribute with a name; None if there is none."""
    if isinstance(step, str):
        return next((part for name, part in attributes_of(value) if name == step), None)
    inside = members(value)
    return inside[step] if 0 <= step < len(inside) else None


def walked(values: Iterable[Encoded]) -> Iterator[Encoded]:
    """Yield the values, each followed by all values inside it, in its members and attributes."""
    for value in values:
        yield value
        yield from walked(members(value))
        yield from walked(part for _, part in attributes_of(value))


def contents_in(values: Iterable[Encoded], kinds: str) -> Iterator[Any]:
    """Yield the contents of the values with one of the tags in `kinds`, which are among or inside the values.

    They are the strings for `TEXT`, the names of exceptions for `RAISING`, and the numbers of the recorded
    calls that objects come from for `OBJECT`.
    """
    return (value[1] for value in walked(values) if value[0] in kinds)


def has_attributes(value: Encoded) -> bool:
    """Whether a value is, or contains, an object whose attributes are described."""
    return any(map(attributes_of, walked([value])))


def with_members(value: Encoded, changed: Callable[[Encoded], Encoded]) -> Encoded:
    """Return a value in which `changed` was applied to each member.

    An object has no members, and the value that a subclass extends is left as it is.
    """
    match value:
        case [tags.DICTIONARY, pairs]:
            return [tags.DICTIONARY, [list(map(changed, pair)) for pair in pairs]]
        case [tags.EXACT, name, parts]:
            return [tags.EXACT, name, list(map(changed, parts))]
        case [kind, parts] if kind in tags.CONTAINERS:
            return [kind, list(map(changed, parts))]
    return value


def as_input(value: Encoded) -> Encoded:
    """Return a described value as an input in which the objects are as recorded.

    The attributes that `as_example` found to be set stay set.
    """
    if value[0] != tags.OBJECT:
        return with_members(value, as_input)
    kept = _set_attributes(value)
    return [*value[:_PLAIN_OBJECT], kept] if kept else value[:_PLAIN_OBJECT]


def with_attributes(value: Encoded, attributes: Sequence[Sequence[Any]]) -> Encoded:
    """Return an object of a recorded call with other attributes: pairs of a name and an encoded value."""
    changed = {pair[0]: list(pair) for pair in (*_set_attributes(value), *attributes)}
    return [*value[:_PLAIN_OBJECT], list(changed.values())]


def _set_attributes(value: Encoded) -> list[list[Any]]:
    return value[_VARIED_OBJECT - 1] if len(value) == _VARIED_OBJECT else []


def as_example(value: Encoded, described: Callable[[int, Sequence[Any]], Encoded | None]) -> Encoded:
    """Return a value of an input as an example for further inputs; attributes that are set stay set.

    `described(call, way)` returns the object at a place in a recorded call, or None if it has no
    description.
    """
    if value[0] != tags.OBJECT:
        return with_members(value, lambda part: as_example(part, described))
    known = described(value[1], value[2])
    own = attributes_of(value)
    held = dict(attributes_of(known) if known else []) | dict(own)
    return [*value[:_PLAIN_OBJECT], list(map(list, held.items())), own]


def written(value: Encoded) -> str:
    """Return an encoded value in Python's notation.

    An object is shown by the name of its class, with the attributes that differ from the recorded ones.
    """
    return _NOTATIONS.get(value[0], _written_object)(value)


def _written_dictionary(value: Encoded) -> str:
    pairs = (f"{written(key)}: {written(part)}" for key, part in value[1])
    return "{" + ", ".join(pairs) + "}"


def _written_object(value: Encoded) -> str:
    changed = ", ".join(f"{name}={written(part)}" for name, part in attributes_of(value))
    return f"<{value[3]} of call {value[1] + 1}{' with ' if changed else ''}{changed}>"


def _written_container(value: Encoded) -> str:
    kind, parts = value
    if not parts and kind in _EMPTY:
        return _EMPTY[kind]
    inside = ", ".join(map(written, parts))
    if kind == tags.SLICE:
        return f"slice({inside})"
    comma = "," if kind == tags.TUPLE and len(parts) == 1 else ""
    left, right = _BRACKETS[kind]
    return f"{left}{inside}{comma}{right}"


_NOTATIONS: Mapping[str, Callable[[Encoded], str]] = {
    tags.NONE: lambda value: "None",
    tags.BOOLEAN: lambda value: repr(value[1]),
    tags.INTEGER: lambda value: str(value[1]),
    tags.FLOAT: lambda value: str(value[1]),
    tags.TEXT: lambda value: repr(value[1]),
    tags.BYTES: lambda value: repr(bytes.fromhex(value[1])),
    tags.DICTIONARY: _written_dictionary,
    tags.EXACT: lambda value: f"{value[1]}({', '.join(map(written, value[2]))})",
    tags.SUBCLASS: lambda value: f"<a subclass: {written(value[1])}>",
    tags.RAISING: lambda value: f"<a function that raises {value[1]}>",
    **dict.fromkeys(tags.CONTAINERS, _written_container),
}
"""For each tag of a value other than an object, a function that returns the value in Python's notation."""

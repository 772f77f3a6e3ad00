"""Reads, changes and shows encoded values, in the form that `payload/call_replayer.py` describes.

Nothing of a repository may be unpickled outside the sandbox, so inputs are made from encoded values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
    """Return the pairs of names and encoded values of an object's attributes; empty if it has none."""
    return value[_PLAIN_OBJECT] if len(value) > _PLAIN_OBJECT else []


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


def calls_in(value: Encoded) -> Iterator[int]:
    """Yield, for each object in a value, the number of the recorded call that it comes from."""
    if value[0] == tags.OBJECT:
        yield value[1]
    for part in (*members(value), *(part for _, part in attributes_of(value) if value[0] == tags.OBJECT)):
        yield from calls_in(part)


def has_attributes(value: Encoded) -> bool:
    """Whether a value is, or contains, an object whose attributes are described."""
    if value[0] == tags.OBJECT:
        return bool(attributes_of(value))
    return any(map(has_attributes, members(value)))


def texts_in(value: Encoded) -> Iterator[str]:
    """Yield the strings in a value, also those in attributes."""
    if value[0] == tags.TEXT:
        yield value[1]
    for part in (*members(value), *(part for _, part in attributes_of(value) if value[0] == tags.OBJECT)):
        yield from texts_in(part)


def planted_in(values: Iterable[Encoded]) -> set[str]:
    """Return the names of the exceptions that functions in the values raise, which replace recorded ones."""
    found = set[str]()
    for value in values:
        if value[0] == tags.RAISING:
            found.add(value[1])
        parts = (part for _, part in attributes_of(value)) if value[0] == tags.OBJECT else members(value)
        found |= planted_in(parts)
    return found


def as_input(value: Encoded) -> Encoded:
    """Return a described value as an input in which the objects are as recorded.

    The attributes that `as_example` found to be set stay set.
    """
    match value[0]:
        case tags.OBJECT:
            return [*value[:_PLAIN_OBJECT], *([kept] if (kept := _set_attributes(value)) else [])]
        case tags.DICTIONARY:
            return [tags.DICTIONARY, [[as_input(key), as_input(part)] for key, part in value[1]]]
        case tags.EXACT:
            return [tags.EXACT, value[1], list(map(as_input, value[2]))]
        case kind if kind in tags.CONTAINERS:
            return [kind, list(map(as_input, value[1]))]
    return value


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
    match value[0]:
        case tags.OBJECT:
            known = described(value[1], value[2])
            own = attributes_of(value)
            held = dict(attributes_of(known) if known else []) | dict(own)
            return [*value[:_PLAIN_OBJECT], [[name, part] for name, part in held.items()], own]
        case tags.DICTIONARY:
            return [tags.DICTIONARY, [[as_example(part, described) for part in pair] for pair in value[1]]]
        case tags.EXACT:
            return [tags.EXACT, value[1], [as_example(part, described) for part in value[2]]]
        case kind if kind in tags.CONTAINERS:
            return [kind, [as_example(part, described) for part in value[1]]]
    return value


def written(value: Encoded) -> str:
    """Return an encoded value in Python's notation.

    An object is shown by the name of its class, with the attributes that differ from the recorded ones.
    """
    kind = value[0]
    match kind:
        case tags.NONE:
            return "None"
        case tags.BOOLEAN | tags.TEXT:
            return repr(value[1])
        case tags.INTEGER | tags.FLOAT:
            return str(value[1])
        case tags.BYTES:
            return repr(bytes.fromhex(value[1]))
        case tags.DICTIONARY:
            return "{" + ", ".join(f"{written(key)}: {written(part)}" for key, part in value[1]) + "}"
        case tags.EXACT:
            return f"{value[1]}({', '.join(map(written, value[2]))})"
        case tags.SUBCLASS:
            return f"<a subclass: {written(value[1])}>"
        case tags.RAISING:
            return f"<a function that raises {value[1]}>"
        case _ if kind in tags.CONTAINERS:
            return _written_container(kind, value[1])
    changed = ", ".join(f"{name}={written(part)}" for name, part in attributes_of(value))
    return f"<{value[3]} of call {value[1] + 1}{' with ' if changed else ''}{changed}>"


def _written_container(kind: str, parts: Sequence[Encoded]) -> str:
    if not parts and kind in _EMPTY:
        return _EMPTY[kind]
    inside = ", ".join(map(written, parts))
    if kind == tags.SLICE:
        return f"slice({inside})"
    comma = "," if kind == tags.TUPLE and len(parts) == 1 else ""
    left, right = _BRACKETS[kind]
    return f"{left}{inside}{comma}{right}"

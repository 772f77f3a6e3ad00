"""Makes inputs simpler, one step at a time, to find the smallest difference to show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gistpoint.sandbox.equivalence import tags
from gistpoint.sandbox.equivalence.encoded import (
    Encoded,
    as_input,
    attributes_of,
    with_attributes,
)

_LARGE = 1e15


def size(values: Sequence[Encoded]) -> tuple[int, int, str]:
    """Return the sort key of inputs: the number of parts, then the length of the `repr`, then the `repr`."""
    text = repr(values)
    return sum(_parts(value) for value in values), len(text), text


def _parts(value: Encoded) -> int:
    match value[0]:
        case tags.DICTIONARY:
            return 1 + sum(_parts(key) + _parts(part) for key, part in value[1])
        case tags.EXACT:
            return 1 + sum(map(_parts, value[2]))
        case tags.SUBCLASS:
            # Larger than the plain value, so that the plain value counts as simpler.
            return 1 + _parts(value[1])
        case tags.OBJECT:
            return 1 + sum(_parts(part) for _, part in attributes_of(value))
        case kind if kind in tags.CONTAINERS:
            return 1 + sum(map(_parts, value[1]))
    return 1


def simpler(values: Sequence[Encoded], most: int) -> list[list[Encoded]]:
    """Return at most `most` inputs that are one step simpler than `values`, smallest first."""
    found = [
        [*values[:n], changed, *values[n + 1 :]]
        for n, value in enumerate(values)
        for changed in _simpler(value)
    ]
    here = size(values)
    # Only smaller inputs, because steps that undo each other would make the search go in circles.
    unique = {repr(item): item for item in found if size(item) < here}
    return sorted(unique.values(), key=size)[:most]


def _simpler(value: Encoded) -> Iterator[Encoded]:
    kind = value[0]
    if kind in tags.CONTAINERS or kind == tags.DICTIONARY:
        yield from _simpler_container(kind, value[1])
    elif kind == tags.SUBCLASS:
        yield value[1]
        yield from ([tags.SUBCLASS, less] for less in _simpler(value[1]))
    elif kind == tags.EXACT:
        yield from ([tags.EXACT, value[1], parts] for parts in _with_one_simpler(value[2]))
    elif kind == tags.OBJECT:
        yield from _simpler_object(value)
    elif kind in _STEPS:
        yield from ([kind, step] for step in _STEPS[kind](value[1]))


def _with_one_simpler(parts: Sequence[Encoded]) -> Iterator[list[Encoded]]:
    for n, part in enumerate(parts):
        for less in _simpler(part):
            yield [*parts[:n], less, *parts[n + 1 :]]


def _simpler_object(value: Encoded) -> Iterator[Encoded]:
    """Yield an object with one of its changed attributes as recorded, or with a simpler value for one."""
    changed = attributes_of(value)
    for n, (name, part) in enumerate(changed):
        others = [*changed[:n], *changed[n + 1 :]]
        yield with_attributes(value, others) if others else as_input(value)
        for less in _simpler(part):
            yield with_attributes(value, [*changed[:n], [name, less], *changed[n + 1 :]])


def _integer_steps(content: str) -> Iterable[str]:
    number = int(content)
    towards_zero = number - 1 if number > 0 else number + 1
    return map(str, (0, 1, number // 2, abs(number), towards_zero))


def _float_steps(content: str) -> Iterable[str]:
    number = float(content)
    # Larger numbers have no fraction, and infinities and NaN have no whole part.
    if abs(number) < _LARGE:
        return map(repr, (0.0, 1.0, float(int(number)), float(int(number / 2))))
    return ()


def _text_steps(content: str) -> Iterable[str]:
    return ("", content[: len(content) // 2], content[1:], content[:-1], "a" * len(content))


def _bytes_steps(content: str) -> Iterable[str]:
    return ("", content[2:], content[:-2])


_STEPS: Mapping[str, Callable[[str], Iterable[str]]] = {
    tags.INTEGER: _integer_steps,
    tags.FLOAT: _float_steps,
    tags.TEXT: _text_steps,
    tags.BYTES: _bytes_steps,
}
"""For each tag of a value, a function that returns simpler contents."""


def _simpler_container(kind: str, parts: Sequence[Any]) -> Iterator[Encoded]:
    can_be_shorter = kind != tags.SLICE
    if parts and can_be_shorter:
        yield [kind, []]
        yield [kind, parts[: len(parts) // 2]]
    for n, part in enumerate(parts):
        if can_be_shorter:
            yield [kind, [*parts[:n], *parts[n + 1 :]]]
        for changed in _simpler_pair(part) if kind == tags.DICTIONARY else _simpler(part):
            yield [kind, [*parts[:n], changed, *parts[n + 1 :]]]


def _simpler_pair(pair: Encoded) -> Iterator[Encoded]:
    # The key is kept, because a simpler one could equal another key of the same dictionary.
    key, value = pair
    return ([key, less] for less in _simpler(value))

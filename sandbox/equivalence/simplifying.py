"""Makes inputs simpler, one step at a time, to find the smallest difference to show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gistpoint.sandbox.equivalence import tags
from gistpoint.sandbox.equivalence.encoded import (
    Encoded,
    as_input,
    attributes_of,
    walked,
    with_attributes,
)

_LARGE = 1e15


def size(values: Sequence[Encoded]) -> tuple[int, int, str]:
    """Return the sort key of inputs: the number of parts, then the length of the `repr`, then the `repr`."""
    text = repr(values)
    return sum(1 for _ in walked(values)), len(text), text


def simpler(values: Sequence[Encoded], most: int) -> list[list[Encoded]]:
    """Return at most `most` inputs that are one step simpler than `values`, smallest first."""
    here = size(values)
    # Only smaller inputs, because steps that undo each other would make the search go in circles.
    unique = {repr(item): item for item in _with_one_simpler(values) if size(item) < here}
    return sorted(unique.values(), key=size)[:most]


def _simpler(value: Encoded) -> Iterator[Encoded]:
    *head, content = value
    kind = value[0]
    if kind == tags.SUBCLASS:
        yield content
    if kind == tags.OBJECT:
        yield from _simpler_object(value)
    elif kind in _STEPS:
        yield from ([*head, step] for step in _STEPS[kind](content))


def _with_one_simpler(parts: Sequence[Encoded]) -> Iterator[list[Encoded]]:
    for n, part in enumerate(parts):
        yield from (_with_part(parts, n, less) for less in _simpler(part))


def _with_part(parts: Sequence[Any], n: int, *others: Any) -> list[Any]:
    """Return parts with others, or with none, in place of one."""
    return [*parts[:n], *others, *parts[n + 1 :]]


def _simpler_object(value: Encoded) -> Iterator[Encoded]:
    """Yield an object with one of its changed attributes as recorded, or with a simpler value for one."""
    changed = attributes_of(value)
    for n, (name, part) in enumerate(changed):
        others = _with_part(changed, n)
        yield with_attributes(value, others) if others else as_input(value)
        for less in _simpler(part):
            yield with_attributes(value, _with_part(changed, n, [name, less]))


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


def _collection_steps(parts: Sequence[Encoded]) -> Iterable[list[Encoded]]:
    return (*_shorter(parts), *_with_one_simpler(parts))


def _dictionary_steps(pairs: Sequence[Sequence[Encoded]]) -> Iterable[list[Any]]:
    yield from _shorter(pairs)
    # The keys are kept, because a simpler one could equal another key of the same dictionary.
    for n, (key, value) in enumerate(pairs):
        yield from (_with_part(pairs, n, [key, less]) for less in _simpler(value))


def _shorter(parts: Sequence[Any]) -> Iterable[list[Any]]:
    """Return no parts, the first half of them, and all but one."""
    return ([], [*parts[: len(parts) // 2]], *(_with_part(parts, n) for n in range(len(parts))))


_STEPS: Mapping[str, Callable[[Any], Iterable[Any]]] = {
    tags.INTEGER: _integer_steps,
    tags.FLOAT: _float_steps,
    tags.TEXT: _text_steps,
    tags.BYTES: _bytes_steps,
    **dict.fromkeys(tags.COLLECTIONS, _collection_steps),
    tags.SLICE: _with_one_simpler,
    tags.EXACT: _with_one_simpler,
    tags.DICTIONARY: _dictionary_steps,
    tags.SUBCLASS: _simpler,
}
"""For each tag of a value other than an object, a function that returns simpler contents."""

"""Makes inputs at the boundaries that a function's source and its recorded calls suggest.

Each input is a recorded call with one value replaced: an argument, a member of a container in it, or an
attribute of an object in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from typing import TypeVar

from gistpoint.sandbox.equivalence import tags
from gistpoint.sandbox.equivalence.encoded import (
    Encoded,
    as_input,
    attributes_of,
    contents_in,
    members,
    spread,
    with_attributes,
)
from gistpoint.sandbox.equivalence.hints import Hints

_CALLS = 8
"""The maximum number of recorded calls in which values are replaced."""
_DEPTH = 4
_PARTS = 4
"""The number of members at the beginning of a container that are replaced."""
_FIRST = 3
"""The number of values of the same type that replace a value before values of other types do."""
_OTHERS_OF_ARGUMENT = 3
"""The number of values of an argument in other recorded calls that replace it in one call."""
_POOL = 8
"""The maximum number of recorded values of an attribute that replace one another."""
_OF_ARGUMENTS = 0.5
"""The share of the inputs that replace a whole argument, if there are enough such inputs."""
_OF_USED = 0.8
"""The share of the inputs that replace a whole argument, or a part of one that the function uses."""
_LARGE = ("1000000", "2147483648", "9223372036854775808")
_NONE: Encoded = [tags.NONE]
_Item = TypeVar("_Item")
_TEXTS = (
    "",
    " ",
    "a",
    "0",
    "\t",
    "\n",
    "a\nb",
    "A b",
    "é",
    "ß",
    "\u00a0",
    "\uff11",
    "\U0001f600",
    "-1",
    "1.5",
)
_EXTENDED = tags.TEXT + tags.BYTES + tags.NUMBERS + tags.SEQUENCES + tags.DICTIONARY
"""The tags of values for which the sandbox has a subclass."""

_CALLABLE = frozenset(
    ("builtins.function", "builtins.builtin_function_or_method", "builtins.method", "functools.partial")
)
"""The classes of objects that a function may be given to call."""
PLANTED = ("PlantedError", "PlantedExit")
"""The names of the exceptions, one an `Exception` and one not, that only functions made for inputs raise."""

_Number = TypeVar("_Number", int, float)

Pools = Mapping[tuple[str, str], Sequence[Encoded]]
"""The values of attributes in all recorded calls, by the name of the class and of the attribute."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A value in the arguments of a recorded call, and how to replace it."""

    value: Encoded
    replaced: Callable[[Encoded], list[Encoded]]
    is_used: bool
    """Whether the function itself names all attributes that lead to the value."""
    is_argument: bool = False
    others: Sequence[Encoded] = ()
    """Values to try first, such as those of the same attribute in other recorded calls."""
    turn: int = 0
    """The number of the recorded call, from 0, among those in which values are replaced."""


def boundary_inputs(examples: Sequence[Sequence[Encoded]], hints: Hints, most: int) -> list[list[Encoded]]:
    """Return at most `most` different inputs that were not recorded, those with very large numbers last.

    The result is the same each time.
    """
    pools = _pools(examples)
    absent = {n for n, values in enumerate(zip(*examples, strict=True)) if _NONE in values}
    given = _given(examples)
    arguments: list[_Place] = []
    used: list[_Place] = []
    others: list[_Place] = []
    for turn, example in enumerate(spread(examples, _CALLS)):
        for place in _places(example, hints, pools, _Given(turn, given, absent)):
            tier = arguments if place.is_argument else used if place.is_used else others
            tier.append(place)
    tiers = [_round_robin(places, hints) for places in (arguments, used, others)]
    known = {repr(list(map(as_input, example))) for example in examples}
    found = _shared_out(tiers, known, most)
    # Large numbers come last, because an input that takes all memory ends the run.
    return sorted(found, key=_is_large)


def _shared_out(
    tiers: Sequence[Iterator[list[Encoded]]], known: Collection[str], most: int
) -> list[list[Encoded]]:
    """Return at most `most` different inputs whose `repr` is not in `known`, with a share for each tier."""
    arguments, used, others = tiers
    found: dict[str, list[Encoded]] = {}
    # This order keeps an object with many attributes from leaving too few inputs for the arguments.
    shares = (arguments, _OF_ARGUMENTS), (used, _OF_USED), (others, 1), (arguments, 1), (used, 1)
    for inputs, share in shares:
        for made in inputs:
            text = repr(made)
            if text not in known:
                found.setdefault(text, made)
            if len(found) >= share * most:
                break
    return list(found.values())[:most]


def _is_large(values: Sequence[Encoded]) -> bool:
    text = repr(values)
    return any(f"'{number}'" in text for number in _LARGE)


def _round_robin(places: Sequence[_Place], hints: Hints) -> Iterator[list[Encoded]]:
    return _in_turn(map(place.replaced, _candidates(place, hints)) for place in places)


def _in_turn(rows: Iterable[Iterable[_Item]]) -> Iterator[_Item]:
    """Yield the first item of each row, then the second of each, and so on; None is no item."""
    for column in zip_longest(*rows):
        yield from (item for item in column if item is not None)


# Positions


def _pools(examples: Sequence[Sequence[Encoded]]) -> Pools:
    found: dict[tuple[str, str], dict[str, Encoded]] = {}

    def take(value: Encoded) -> None:
        for name, part in attributes_of(value):
            pool = found.setdefault((value[3], name), {})
            if len(pool) < _POOL:
                pool.setdefault(repr(as_input(part)), as_input(part))
            take(part)
        for part in members(value):
            take(part)

    for example in examples:
        for value in example:
            take(value)
    return {key: list(pool.values()) for key, pool in found.items()}


@dataclass(frozen=True, slots=True)
class _Given:
    """The values of each argument in other recorded calls, of which each call tries a few."""

    turn: int
    """The number of the call, from 0."""
    values: Sequence[Sequence[Encoded]]
    absent: Collection[int]
    """The numbers of the arguments that are None in some recorded call."""

    def others(self, n: int, value: Encoded) -> list[Encoded]:
        """Return values for an argument: each call begins with others, so all are tried (decision 214)."""
        different = [other for other in self.values[n] if other != as_input(value)]
        turned = _turned(different, self.turn * _OTHERS_OF_ARGUMENT)
        return [*turned[:_OTHERS_OF_ARGUMENT], *([_NONE] if n in self.absent else [])]


def _turned(values: Sequence[Encoded], by: int) -> list[Encoded]:
    """Return the values in a circle, beginning at the one with the number `by`."""
    begin = by % (len(values) or 1)
    return [*values[begin:], *values[:begin]]


def _given(examples: Sequence[Sequence[Encoded]]) -> list[list[Encoded]]:
    """Return the different values of each argument in recorded calls, a few spread over them."""
    found = []
    for values in zip(*examples, strict=True):
        different = {repr(given): given for given in map(as_input, values)}
        found.append([*spread(list(different.values()), _OTHERS_OF_ARGUMENT * _CALLS)])
    return found


def _places(example: Sequence[Encoded], hints: Hints, pools: Pools, given: _Given) -> Iterator[_Place]:
    """Yield the places in a call's arguments, the arguments themselves first."""
    whole = list(map(as_input, example))
    below: list[Iterator[_Place]] = []
    for n, value in enumerate(example):

        def replaced(changed: Encoded, n: int = n) -> list[Encoded]:
            return [*whole[:n], changed, *whole[n + 1 :]]

        # Equal arguments are a boundary for code that compares them.
        others = [*_from_others(value, [*whole[:n], *whole[n + 1 :]]), *given.others(n, value)]
        place = _Place(value, replaced, is_used=True, is_argument=True, others=others, turn=given.turn)
        yield place
        below.append(_places_in(place, hints, pools, 1))
    yield from _in_turn(below)


def _from_others(value: Encoded, others: Sequence[Encoded]) -> Iterator[Encoded]:
    """Yield values for an argument, made from `others`, the other arguments of its call.

    They are the other arguments of the same type, and, for a container, copies of it with one more member:
    another argument of a type that it already contains.
    """
    own = as_input(value)
    for other in others:
        is_another = other[0] == value[0] and other != own
        is_possible_member = value[0] in tags.COLLECTIONS and other[0] in _tags_in(value)
        if is_another:
            yield other
        elif is_possible_member:
            yield [value[0], [*own[1], other]]


def _tags_in(container: Encoded) -> set[str]:
    return {part[0] for part in container[1]}


def _places_in(place: _Place, hints: Hints, pools: Pools, depth: int) -> Iterator[_Place]:
    if depth > _DEPTH:
        return
    for part, rebuilt, name in _parts_of(place.value):

        def replaced(changed: Encoded, rebuilt: Callable[[Encoded], Encoded] = rebuilt) -> list[Encoded]:
            return place.replaced(rebuilt(changed))

        is_used = place.is_used and (not name or name in hints.names)
        others = pools.get((place.value[3], name), ()) if name else ()
        inner = _Place(part, replaced, is_used, others=others, turn=place.turn)
        yield inner
        yield from _places_in(inner, hints, pools, depth + 1)


_Part = tuple[Encoded, Callable[[Encoded], Encoded], str]
"""A part of a value, a function that returns the value with that part replaced, and its attribute's name."""


def _parts_of(value: Encoded) -> Iterator[_Part]:
    kind = value[0]
    if kind == tags.OBJECT:
        for name, part in attributes_of(value):
            put = partial(_with_attribute, value, name)
            yield part, put, name
    elif kind == tags.DICTIONARY:
        for n, (key, part) in enumerate(value[1][:_PARTS]):
            yield key, partial(_with_pair, value, n, 0), ""
            yield part, partial(_with_pair, value, n, 1), ""
    elif kind in tags.CONTAINERS or kind == tags.EXACT:
        parts = value[-1]
        first, last = range(min(_PARTS, len(parts))), range(len(parts))[-1:]
        for n in dict.fromkeys((*first, *last)):
            yield parts[n], partial(_with_part, value, n), ""


def _with_attribute(value: Encoded, name: str, changed: Encoded) -> Encoded:
    return with_attributes(value, [[name, changed]])


def _with_pair(value: Encoded, n: int, place: int, changed: Encoded) -> Encoded:
    pairs = as_input(value)[1]
    pair = [*pairs[n]]
    pair[place] = changed
    return [tags.DICTIONARY, [*pairs[:n], pair, *pairs[n + 1 :]]]


def _with_part(value: Encoded, n: int, changed: Encoded) -> Encoded:
    *tags, parts = as_input(value)
    return [*tags, [*parts[:n], changed, *parts[n + 1 :]]]


# Candidates


def _candidates(place: _Place, hints: Hints) -> Iterator[Encoded]:
    """Yield values for a place, most promising first, because there may be time for only a few."""
    value = place.value
    kind = value[0]
    own = list(_CANDIDATES.get(kind, _no_candidates)(value, hints))
    yield from place.others
    if kind == tags.TEXT:
        yield from ([tags.TEXT, name] for name in _other_members(value[1], hints.members))
    if kind == tags.OBJECT:
        yield from _instead_of_objects(place, hints)
    if _NONE in hints.literals:
        yield _NONE
    has_subclass = kind in _EXTENDED or bool(attributes_of(value))
    if hints.asks_for_types and has_subclass:
        yield [tags.SUBCLASS, as_input(value)]
    yield from own[:_FIRST]
    rest = own[_FIRST:]
    others = _of_other_types(place, hints)
    if kind in tags.NUMBERS:
        # No number is more promising than another, so each call begins with others (decision 214).
        numbers = _turned(rest, place.turn * len(rest) // _CALLS)
        yield from _in_turn((numbers, others))
    else:
        yield from chain(others, rest)
    if kind == tags.NONE:
        yield from hints.literals
        # An optional number that no test passes may also be compared with a literal.
        yield from ([tags.INTEGER, str(number + step)] for number in hints.numbers for step in (1, -1))


def _of_other_types(place: _Place, hints: Hints) -> Iterator[Encoded]:
    for converted in (*_of_other_kinds(place.value, hints), *_unrelated(place, hints)):
        yield converted
        can_be_extended = converted[0] in _EXTENDED
        if hints.asks_for_types and can_be_extended:
            yield [tags.SUBCLASS, converted]


def _instead_of_objects(place: _Place, hints: Hints) -> Iterator[Encoded]:
    if place.value[3] in _CALLABLE:
        # What a caller does if the function raises an exception is part of its behaviour.
        yield from ([tags.RAISING, name] for name in (*PLANTED, *sorted(hints.catches)))
    if place.is_used and _NONE in hints.literals:
        # A version may test for None, and the other for what is false.
        yield from _EMPTY[:_FALSE]


def _no_candidates(_: Encoded, __: Hints) -> Iterator[Encoded]:
    return iter(())


def _of_booleans(value: Encoded, _: Hints) -> Iterator[Encoded]:
    yield [tags.BOOLEAN, not value[1]]


def _of_integers(value: Encoded, hints: Hints) -> Iterator[Encoded]:
    number = int(value[1])
    near = _near(hints.numbers, 1)
    found = (0, -number, number + 1, number - 1, *near, -1, 1, 2, 2 * number, 10, 100, 1000, -1000)
    yield from ([tags.INTEGER, str(made)] for made in dict.fromkeys(found))
    yield from ([tags.INTEGER, made] for made in _LARGE)


def _of_floats(value: Encoded, hints: Hints) -> Iterator[Encoded]:
    number = float(value[1])
    near = _near([*map(float, contents_in(hints.literals, tags.NUMBERS))], 0.5)
    found = (0.0, -number, number + 1, number / 2, *near, -0.0, 0.5, -0.5, 1.5, 2.5, 1e-9, 1e16)
    yield from ([tags.FLOAT, made] for made in dict.fromkeys(map(repr, found)))


def _near(numbers: Sequence[_Number], step: _Number) -> Iterator[_Number]:
    """Yield the numbers themselves, then those next to each, because there may be time for only a few."""
    yield from numbers
    for number in numbers:
        yield from (number + step, number - step, -number)


def _of_texts(value: Encoded, hints: Hints) -> Iterator[Encoded]:
    yield from ([tags.TEXT, made] for made in dict.fromkeys(_texts(value[1], hints)))


def _texts(text: str, hints: Hints) -> Iterator[str]:
    literals = [literal for literal in hints.texts if literal]
    yield ""
    yield from (text[:-1], text[1:])
    edited = (made for literal in literals for made in (literal, text + literal, literal + text))
    yield from _in_turn((edited, _texts_with_lines(text, hints.lines)))
    yield from (f" {text}", f"{text} ", f"{text}\n", text.upper(), text.lower(), text + text, text[::-1])
    for literal in literals:
        half = len(text) // 2
        yield from (text[:half] + literal + text[half:], literal[0], literal[-1], literal + literal)
        yield from (literal.upper(), literal.lower(), text.replace(literal, ""), f" {literal}", f"{literal} ")
    for length in hints.lengths:
        yield (text * length or "a" * length)[:length]
    yield from _TEXTS
    yield from (f"é{text}", f"{text}\u00a0", text.title())


def _other_members(text: str, members: Collection[str]) -> Iterator[str]:
    """Yield the other members of an enumeration whose member is given, in lower case if that is."""
    if text.upper() in map(str.upper, members):
        others = (name for name in members if name.upper() != text.upper())
        yield from (name.lower() if text.islower() else name for name in others)


def _texts_with_lines(text: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield several lines with one more at their end, another last line, or one more at their start."""
    body = text.rstrip("\n")
    end = text[len(body) :]
    above, has_several, _ = body.rpartition("\n")
    if not has_several:
        return
    yield from (f"{body}\n{line}{end}" for line in lines)
    yield from (f"{above}\n{line}{end}" for line in lines)
    yield from (f"{line}\n{text}" for line in lines)


def _of_bytes(value: Encoded, hints: Hints) -> Iterator[Encoded]:
    literals = contents_in(hints.literals, tags.BYTES)
    as_bytes = [*literals, *(text.encode("utf-8", "ignore").hex() for text in hints.texts)]
    content = value[1]
    edited = (step for literal in as_bytes for step in (literal, content + literal, literal + content))
    found = (
        "",
        content[:-2],
        content[2:],
        *edited,
        "20",
        "0a",
        "00",
        "ff",
        content + "0a",
        content + content,
    )
    yield from ([tags.BYTES, made] for made in dict.fromkeys(found))


def _of_containers(value: Encoded, hints: Hints) -> Iterator[Encoded]:
    kind, parts = as_input(value)
    made = [[], parts[:1], parts[:-1], parts[1:], [*parts, *parts[:1]], parts[::-1]]
    made += [(parts * length)[:length] for length in hints.lengths if parts]
    # A set does not change if its members are repeated or reordered.
    made = made if kind in tags.SEQUENCES else made[:4]
    yield from ([kind, list(part)] for part in made)
    held = _tags_in(value)
    for literal in hints.literals:
        is_fitting = not held or literal[0] in {*held, tags.NONE}
        if not is_fitting:
            continue
        yield [kind, [*parts, literal]]
        yield [kind, [literal, *parts[1:]]]


def _of_dictionaries(value: Encoded, hints: Hints) -> Iterator[Encoded]:
    pairs = as_input(value)[1]
    yield [tags.DICTIONARY, []]
    for n in range(min(_PARTS, len(pairs))):
        yield [tags.DICTIONARY, [*pairs[:n], *pairs[n + 1 :]]]
    yield [tags.DICTIONARY, pairs[::-1]]
    held = pairs[0][1] if pairs else _NONE
    known = [key for key, _ in pairs]
    for literal in hints.literals:
        if literal not in known:
            yield [tags.DICTIONARY, [*pairs, [literal, held]]]


_CANDIDATES: Mapping[str, Callable[[Encoded, Hints], Iterator[Encoded]]] = {
    tags.BOOLEAN: _of_booleans,
    tags.INTEGER: _of_integers,
    tags.FLOAT: _of_floats,
    tags.TEXT: _of_texts,
    tags.BYTES: _of_bytes,
    tags.DICTIONARY: _of_dictionaries,
    **dict.fromkeys(tags.COLLECTIONS, _of_containers),
}
"""For each tag of a recorded value, a function that yields other values of its type."""


def _of_other_kinds(value: Encoded, hints: Hints) -> Iterator[Encoded]:
    """Yield the value converted to other types that the source names, such as bytes converted to a string."""
    # Booleans come last, because there are only two.
    for kind in sorted(hints.kinds - {value[0]}, key=lambda kind: (kind == tags.BOOLEAN, kind)):
        for from_kinds, to_kinds, converted in _CONVERSIONS:
            if value[0] in from_kinds and kind in to_kinds:
                yield from converted(as_input(value), kind)
                break


_EMPTY: Sequence[Encoded] = (
    [tags.TEXT, ""],
    [tags.INTEGER, "0"],
    [tags.LIST, []],
    [tags.DICTIONARY, []],
    [tags.TUPLE, []],
    [tags.BYTES, ""],
    [tags.FLOAT, "0.0"],
    [tags.SET, []],
    [tags.FROZENSET, []],
    [tags.BOOLEAN, False],
)
"""Values of built-in types that are false, one of each type."""
_FALSE = 2
"""The number of these values that replace an object if the source names None."""
_OTHERS: Sequence[Encoded] = (
    [tags.INTEGER, "7"],
    [tags.BYTES, "37"],
    [tags.FLOAT, "1.5"],
    [tags.TEXT, "7"],
    [tags.TEXT, "a"],
    [tags.NONE],
    [tags.BOOLEAN, True],
    [tags.LIST, [[tags.INTEGER, "1234567"]]],  # numbers of several digits may be formatted
    [tags.TUPLE, [[tags.TEXT, "a"]]],
)
"""Values of several types."""


def _unrelated(place: _Place, hints: Hints) -> Iterator[Encoded]:
    """Yield values of other types, unrelated to the value of a place.

    A function that checks types may treat empty values of these types specially, and booleans if it checks
    for numbers. A function that converts to a type may accept values of any other type.
    """
    kind = place.value[0]
    if hints.asks_for_types:
        yield from (empty for empty in _EMPTY if empty[0] in hints.kinds - {kind})
        if tags.INTEGER in {*hints.kinds, kind}:
            yield [tags.BOOLEAN, True]
    if hints.converts and place.is_argument:
        if kind in tags.SEQUENCES:
            # Such a function accepts any iterable, and an iterable that is not converted to a list has no
            # order and no slices.
            parts = as_input(place.value)[1]
            yield [tags.SET, parts]
            yield [tags.DICTIONARY, [[part, _NONE] for part in parts]]
        if kind in _BYTES_OF:
            yield _BYTES_OF[kind](place.value)
        yield from (other for other in _OTHERS if other[0] != kind)


_BYTES_OF: Mapping[str, Callable[[Encoded], Encoded]] = {
    tags.TEXT: lambda value: [tags.BYTES, value[1].encode("utf-8", "ignore").hex()],
    tags.BYTES: lambda value: [tags.TEXT, bytes.fromhex(value[1]).decode("latin-1")],
}
"""Conversions of text to bytes and of bytes to text: a version that accepts only one shows a difference."""


def _as_integer(value: Encoded, _: str) -> list[Encoded]:
    number = float(value[1])
    return [[tags.INTEGER, str(int(number))]] if abs(number) < float(_LARGE[-1]) else []


_SINGLE = tags.BOOLEAN + tags.NUMBERS + tags.TEXT + tags.BYTES + tags.EXACT + tags.OBJECT
"""The tags of values that a list or a tuple can contain as its only member."""
_WITH_TRUTH = tags.NONE + tags.NUMBERS + tags.TEXT + tags.BYTES + tags.COLLECTIONS + tags.DICTIONARY
"""The tags of values that are often tested for truth."""
_CONVERSIONS: Sequence[tuple[str, str, Callable[[Encoded, str], list[Encoded]]]] = (
    (tags.BYTES, tags.TEXT, lambda value, _: [[tags.TEXT, bytes.fromhex(value[1]).decode("latin-1")]]),
    (tags.TEXT, tags.BYTES, lambda value, _: [[tags.BYTES, value[1].encode("utf-8", "ignore").hex()]]),
    (tags.NUMBERS, tags.TEXT, lambda value, _: [[tags.TEXT, str(value[1])]]),
    (
        tags.TEXT,
        tags.INTEGER,
        lambda value, _: [[tags.INTEGER, number] for number in ("0", "7", str(len(value[1])))],
    ),
    (
        tags.INTEGER,
        tags.FLOAT,
        lambda value, _: [[tags.FLOAT, repr(float(value[1]) + step)] for step in (0, 0.5)],
    ),
    (tags.FLOAT, tags.INTEGER, _as_integer),
    (_WITH_TRUTH, tags.BOOLEAN, lambda value, _: [[tags.BOOLEAN, True], [tags.BOOLEAN, False]]),
    (tags.NONE + tags.BOOLEAN, tags.TEXT, lambda value, _: [[tags.TEXT, text] for text in _TEXTS[:4]]),
    (
        tags.NONE + tags.BOOLEAN,
        tags.INTEGER,
        lambda value, _: [[tags.INTEGER, number] for number in ("0", "1", "-1", "7")],
    ),
    (
        tags.COLLECTIONS,
        tags.NUMBERS + tags.TEXT + tags.BYTES,
        lambda value, kind: [part for part in value[1][:2] if part[0] == kind],
    ),
    (tags.COLLECTIONS, tags.COLLECTIONS, lambda value, kind: [[kind, value[1]]]),
    (tags.NONE, tags.COLLECTIONS + tags.DICTIONARY, lambda value, kind: [[kind, []]]),
    (_SINGLE, tags.SEQUENCES, lambda value, kind: [[kind, [value]]]),
)
"""Tags of values, tags of other types, and a function that converts such a value to such a type."""

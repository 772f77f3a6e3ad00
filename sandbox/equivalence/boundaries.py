"""Makes inputs at the boundaries that a function's source and its recorded calls suggest.

Each input is a recorded call with one value replaced: an argument, a member of a container in it, or an
attribute of an object in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, zip_longest

from gistpoint.sandbox.equivalence.encoded import (
    CONTAINERS,
    Encoded,
    as_input,
    attributes_of,
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
_POOL = 8
"""The maximum number of recorded values of an attribute that replace one another."""
_OF_ARGUMENTS = 0.5
"""The share of the inputs that replace a whole argument, if there are enough such inputs."""
_OF_USED = 0.8
"""The share of the inputs that replace a whole argument, or a part of one that the function uses."""
_LARGE = ("1000000", "2147483648", "9223372036854775808")
_NONE: Encoded = ["n"]
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
_EXTENDED = "sifyltd"
"""The tags of values for which the sandbox has a subclass."""

_CALLABLE = frozenset(
    ("builtins.function", "builtins.builtin_function_or_method", "builtins.method", "functools.partial")
)
"""The classes of objects that a function may be given to call."""
PLANTED = ("PlantedError", "PlantedExit")
"""The names of the exceptions, one an `Exception` and one not, that only functions made for inputs raise."""

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


def boundary_inputs(examples: Sequence[Sequence[Encoded]], hints: Hints, most: int) -> list[list[Encoded]]:
    """Return at most `most` different inputs that were not recorded, those with very large numbers last.

    The result is the same each time.
    """
    pools = _pools(examples)
    absent = {n for example in examples for n, value in enumerate(example) if value == _NONE}
    arguments: list[_Place] = []
    used: list[_Place] = []
    others: list[_Place] = []
    for example in spread(examples, _CALLS):
        for place in _places(example, hints, pools, absent):
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
    """Yield the first input of each place, then the second of each, and so on."""
    rows = [map(place.replaced, _candidates(place, hints)) for place in places]
    for row in zip_longest(*rows):
        yield from (made for made in row if made is not None)


# Positions


def _pools(examples: Sequence[Sequence[Encoded]]) -> Pools:
    found: dict[tuple[str, str], dict[str, Encoded]] = {}

    def take(value: Encoded) -> None:
        for name, part in attributes_of(value) if value[0] == "o" else ():
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


def _places(
    example: Sequence[Encoded], hints: Hints, pools: Pools, absent: Collection[int]
) -> Iterator[_Place]:
    """Yield the places in a call's arguments, the arguments themselves first.

    `absent` contains the numbers of the arguments that are None in some recorded call.
    """
    whole = list(map(as_input, example))
    below: list[Iterator[_Place]] = []
    for n, value in enumerate(example):

        def replaced(changed: Encoded, n: int = n) -> list[Encoded]:
            return [*whole[:n], changed, *whole[n + 1 :]]

        # Equal arguments are a boundary for code that compares them.
        others = [*_from_others(value, [*whole[:n], *whole[n + 1 :]]), *([_NONE] if n in absent else [])]
        place = _Place(value, replaced, is_used=True, is_argument=True, others=others)
        yield place
        below.append(_places_in(place, hints, pools, 1))
    for row in zip_longest(*below):
        yield from (place for place in row if place is not None)


def _from_others(value: Encoded, others: Sequence[Encoded]) -> Iterator[Encoded]:
    """Yield values for an argument, made from `others`, the other arguments of its call.

    They are the other arguments of the same type, and, for a container, copies of it with one more member:
    another argument of a type that it already contains.
    """
    for other in others:
        if other[0] == value[0] and other != as_input(value):
            yield other
        elif value[0] in "ltez" and other[0] in _tags_in(value):
            yield [value[0], [*as_input(value)[1], other]]


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
        inner = _Place(part, replaced, is_used, others=others)
        yield inner
        yield from _places_in(inner, hints, pools, depth + 1)


_Part = tuple[Encoded, Callable[[Encoded], Encoded], str]
"""A part of a value, a function that returns the value with that part replaced, and its attribute's name."""


def _parts_of(value: Encoded) -> Iterator[_Part]:
    kind = value[0]
    if kind == "o":
        for name, part in attributes_of(value):
            put = partial(_with_attribute, value, name)
            yield part, put, name
    elif kind == "d":
        for n, (key, part) in enumerate(value[1][:_PARTS]):
            yield key, partial(_with_pair, value, n, 0), ""
            yield part, partial(_with_pair, value, n, 1), ""
    elif kind in CONTAINERS or kind == "x":
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
    return ["d", [*pairs[:n], pair, *pairs[n + 1 :]]]


def _with_part(value: Encoded, n: int, changed: Encoded) -> Encoded:
    *tags, parts = as_input(value)
    return [*tags, [*parts[:n], changed, *parts[n + 1 :]]]


# Candidates


def _candidates(place: _Place, hints: Hints) -> Iterator[Encoded]:
    """Yield values for a place, most promising first, because there may be time for only a few."""
    value = place.value
    kind = value[0]
    own = _CANDIDATES[kind](value, hints) if kind in _CANDIDATES else iter(())
    yield from place.others
    if kind == "o" and value[3] in _CALLABLE:
        # Whether an exception of a function that is called gets through is part of the caller's behaviour.
        yield from (["r", name] for name in (*PLANTED, *sorted(hints.catches)))
    if _NONE in hints.literals:
        yield _NONE
    if hints.asks_for_types and kind in _EXTENDED:
        yield ["k", as_input(value)]
    yield from islice(own, _FIRST)
    for converted in (*_of_other_kinds(value, hints), *_unrelated(place, hints)):
        yield converted
        if hints.asks_for_types and converted[0] in _EXTENDED:
            yield ["k", converted]
    yield from own
    if kind == "n":
        yield from hints.literals
        # An optional number that no test passes may also be compared with a literal.
        yield from (["i", str(number + step)] for number in hints.numbers for step in (1, -1))


def _of_booleans(value: Encoded, _: Hints) -> Iterator[Encoded]:
    yield ["b", not value[1]]


def _of_integers(value: Encoded, hints: Hints) -> Iterator[Encoded]:
    number = int(value[1])
    near = [step for literal in hints.numbers for step in (literal, literal + 1, literal - 1, -literal)]
    found = (0, -number, number + 1, number - 1, *near, -1, 1, 2, 2 * number, 10, 100, 1000, -1000)
    yield from (["i", str(made)] for made in dict.fromkeys(found))
    yield from (["i", made] for made in _LARGE)


def _of_floats(value: Encoded, hints: Hints) -> Iterator[Encoded]:
    number = float(value[1])
    literals = [float(found[1]) for found in hints.literals if found[0] in "if"]
    near = [step for literal in literals for step in (literal, literal + 0.5, literal - 0.5, -literal)]
    found = (0.0, -number, number + 1, number / 2, *near, -0.0, 0.5, -0.5, 1.5, 2.5, 1e-9, 1e16)
    yield from (["f", made] for made in dict.fromkeys(map(repr, found)))


def _of_texts(value: Encoded, hints: Hints) -> Iterator[Encoded]:
    yield from (["s", made] for made in dict.fromkeys(_texts(value[1], hints)))


def _texts(text: str, hints: Hints) -> Iterator[str]:
    literals = [literal for literal in hints.texts if literal]
    yield ""
    yield from (text[:-1], text[1:])
    for literal in literals:
        yield from (literal, text + literal, literal + text)
    yield from (f" {text}", f"{text} ", f"{text}\n", text.upper(), text.lower(), text + text, text[::-1])
    for literal in literals:
        half = len(text) // 2
        yield from (text[:half] + literal + text[half:], literal[0], literal[-1], literal + literal)
        yield from (literal.upper(), literal.lower(), text.replace(literal, ""), f" {literal}", f"{literal} ")
    for length in hints.lengths:
        yield (text * length or "a" * length)[:length]
    yield from _TEXTS
    yield from (f"é{text}", f"{text}\u00a0", text.title())


def _of_bytes(value: Encoded, hints: Hints) -> Iterator[Encoded]:
    literals = (found[1] for found in hints.literals if found[0] == "y")
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
    yield from (["y", made] for made in dict.fromkeys(found))


def _of_containers(value: Encoded, hints: Hints) -> Iterator[Encoded]:
    kind, parts = as_input(value)
    made = [[], parts[:1], parts[:-1], parts[1:], [*parts, *parts[:1]], parts[::-1]]
    made += [(parts * length)[:length] for length in hints.lengths if parts]
    # A set does not change if its members are repeated or reordered.
    made = made if kind in "lt" else made[:4]
    yield from ([kind, list(part)] for part in made)
    tags = _tags_in(value)
    for literal in hints.literals:
        if tags and literal[0] not in tags | {"n"}:
            continue
        yield [kind, [*parts, literal]]
        yield [kind, [literal, *parts[1:]]]


def _of_dictionaries(value: Encoded, hints: Hints) -> Iterator[Encoded]:
    pairs = as_input(value)[1]
    yield ["d", []]
    for n in range(min(_PARTS, len(pairs))):
        yield ["d", [*pairs[:n], *pairs[n + 1 :]]]
    yield ["d", pairs[::-1]]
    held = pairs[0][1] if pairs else _NONE
    known = [key for key, _ in pairs]
    for literal in hints.literals:
        if literal not in known:
            yield ["d", [*pairs, [literal, held]]]


_CANDIDATES: Mapping[str, Callable[[Encoded, Hints], Iterator[Encoded]]] = {
    "b": _of_booleans,
    "i": _of_integers,
    "f": _of_floats,
    "s": _of_texts,
    "y": _of_bytes,
    "d": _of_dictionaries,
    **dict.fromkeys("ltez", _of_containers),
}
"""For each tag of a recorded value, a function that yields other values of its type."""


def _of_other_kinds(value: Encoded, hints: Hints) -> Iterator[Encoded]:
    """Yield the value converted to other types that the source names, such as bytes converted to a string."""
    # Booleans come last, because there are only two.
    for kind in sorted(hints.kinds - {value[0]}, key=lambda kind: (kind == "b", kind)):
        for from_kinds, to_kinds, converted in _CONVERSIONS:
            if value[0] in from_kinds and kind in to_kinds:
                yield from converted(as_input(value), kind)
                break


_EMPTY: Sequence[Encoded] = (
    ["s", ""],
    ["i", "0"],
    ["l", []],
    ["d", []],
    ["t", []],
    ["y", ""],
    ["f", "0.0"],
    ["e", []],
    ["z", []],
    ["b", False],
)
"""Values of built-in types that are false, one of each type."""
_OTHERS: Sequence[Encoded] = (
    ["i", "7"],
    ["y", "37"],
    ["f", "1.5"],
    ["s", "7"],
    ["s", "a"],
    ["n"],
    ["b", True],
    ["l", [["i", "7"]]],
    ["t", [["s", "a"]]],
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
        if "i" in hints.kinds - {kind} or kind == "i":
            yield ["b", True]
    if hints.converts and place.is_argument:
        if kind in "lt":
            # Such a function accepts any iterable, and an iterable that is not converted to a list has no
            # order and no slices.
            parts = as_input(place.value)[1]
            yield ["e", parts]
            yield ["d", [[part, _NONE] for part in parts]]
        if kind in _BYTES_OF:
            yield _BYTES_OF[kind](place.value)
        yield from (other for other in _OTHERS if other[0] != kind)


_BYTES_OF: Mapping[str, Callable[[Encoded], Encoded]] = {
    "s": lambda value: ["y", value[1].encode("utf-8", "ignore").hex()],
    "y": lambda value: ["s", bytes.fromhex(value[1]).decode("latin-1")],
}
"""Functions that return text as bytes and bytes as text, because most functions accept both or neither."""


def _as_integer(value: Encoded, _: str) -> list[Encoded]:
    number = float(value[1])
    return [["i", str(int(number))]] if abs(number) < float(_LARGE[-1]) else []


_CONVERSIONS: Sequence[tuple[str, str, Callable[[Encoded, str], list[Encoded]]]] = (
    ("y", "s", lambda value, _: [["s", bytes.fromhex(value[1]).decode("latin-1")]]),
    ("s", "y", lambda value, _: [["y", value[1].encode("utf-8", "ignore").hex()]]),
    ("if", "s", lambda value, _: [["s", str(value[1])]]),
    ("s", "i", lambda value, _: [["i", number] for number in ("0", "7", str(len(value[1])))]),
    ("i", "f", lambda value, _: [["f", repr(float(value[1]) + step)] for step in (0, 0.5)]),
    ("f", "i", _as_integer),
    ("nisfyltezd", "b", lambda value, _: [["b", True], ["b", False]]),
    ("nb", "s", lambda value, _: [["s", text] for text in _TEXTS[:4]]),
    ("nb", "i", lambda value, _: [["i", number] for number in ("0", "1", "-1", "7")]),
    ("ltez", "siyf", lambda value, kind: [part for part in value[1][:2] if part[0] == kind]),
    ("ltez", "ltez", lambda value, kind: [[kind, value[1]]]),
    ("n", "ltezd", lambda value, kind: [[kind, []]]),
    ("bisfyxo", "lt", lambda value, kind: [[kind, [value]]]),
)
"""Tags of values, tags of other types, and a function that converts such a value to such a type."""

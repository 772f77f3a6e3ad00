"""Draws values like recorded ones, according to type and attributes.

A drawing function takes the random numbers and returns one encoded value. Nothing is shrunk or stored, and
600 inputs have to be made within a fraction of a second, which the engine of a property tester can't do
(decision 200).
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

from gistpoint.sandbox.equivalence import tags
from gistpoint.sandbox.equivalence.encoded import (
    Encoded,
    as_input,
    attributes_of,
    spread,
    with_attributes,
)
from gistpoint.sandbox.equivalence.hints import Hints

_Item = TypeVar("_Item")
Draw = Callable[[Random], _Item]
"""A function that draws a value."""
FEW = 40
"""The maximum number of recorded values of one parameter from which values are drawn."""
_LONGEST = 12
_FAR = 10_000
"""The limit on integers that are far from recorded ones; larger ones would often cause endless loops."""
_FINITE = 1e300
_LETTERS = 200
_DEEPEST = 3
"""The number of levels of nested objects whose attributes are drawn."""
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.1, 0.5, 1.5, 2.5, 1 / 3, 1e-9, 2.0**-1074, 1e16, 2.0**53, -1e16, 1.7e308)
"""Floats at which rounding, formatting or comparisons often fail."""
_RANGES = (
    (0x20, 0x7E),
    (0x00, 0x1F),
    (0xA0, 0xFF),
    (0x0300, 0x036F),
    (0x0370, 0x03FF),
    (0x0590, 0x06FF),
    (0x2000, 0x206F),
    (0x3000, 0x30FF),
    (0x4E00, 0x4EFF),
    (0xAC00, 0xACFF),
    (0xFF00, 0xFF60),
    (0x1F600, 0x1F64F),
)
"""Ranges of characters of several scripts, widths and directions, with combining ones and controls."""


def like(values: Sequence[Encoded], hints: Hints) -> Draw[Encoded]:
    """Return a function that draws values like the recorded ones of one parameter, including these."""
    return _Drawing(hints).like(values)


def one_of(values: Sequence[_Item]) -> Draw[_Item]:
    """Return a function that draws one of the values."""
    return lambda chance: chance.choice(values)


def any_of(draws: Sequence[Draw[_Item]]) -> Draw[_Item]:
    """Return a function that draws with one of `draws`, each with the same probability."""
    return lambda chance: chance.choice(draws)(chance)


def _length(chance: Random, longest: int) -> int:
    """Return a length up to `longest`; short ones are drawn more often, because they find more faults."""
    return int((longest + 1) * chance.random() ** 2)


def _text(letters: Sequence[str], longest: int) -> Draw[str]:
    return lambda chance: "".join(chance.choices(letters, k=_length(chance, longest)))


def _any_text(longest: int) -> Draw[str]:
    def draw(chance: Random) -> str:
        ranges = chance.choices(_RANGES, k=_length(chance, longest))
        return "".join(chr(chance.randint(first, last)) for first, last in ranges)

    return draw


class _Drawing:
    """A maker of functions that draw values like recorded ones."""

    def __init__(self, hints: Hints) -> None:
        self.hints = hints
        self.within = 0
        """The number of objects around the value whose drawing function is being made."""

    def like(self, values: Sequence[Encoded]) -> Draw[Encoded]:
        of_kind: dict[str, list[Encoded]] = {}
        for value in values:
            of_kind.setdefault(value[0], []).append(value)
        # Each different value once: those that the tests rarely give are as likely to show a fault.
        different = {repr(given): given for given in map(as_input, values)}
        recorded = one_of(spread(list(different.values()), FEW))
        made = (_DRAWINGS[kind](self, seen) for kind, seen in of_kind.items() if kind in _DRAWINGS)
        return any_of([recorded, *(draw for draw in made if draw is not None)])

    def booleans(self, _: Sequence[Encoded]) -> Draw[Encoded]:
        return lambda chance: [tags.BOOLEAN, chance.random() < 0.5]

    def integers(self, seen: Sequence[Encoded]) -> Draw[Encoded]:
        numbers = [int(value[1]) for value in seen]
        low, high = min(numbers), max(numbers)
        reach = 5 + (high - low) // 2
        # Boundary faults appear at or next to a number that was recorded or is in the source.
        known = [*spread(numbers, FEW), *self.hints.numbers]

        def far(chance: Random) -> int:
            return chance.choice((-1, 1)) * int(_FAR ** chance.random())

        number: Draw[int] = any_of(
            [
                lambda chance: chance.randint(low - reach, high + reach),
                lambda chance: chance.choice(known) + chance.choice((-1, 0, 1)),
                far,
            ]
        )
        return lambda chance: [tags.INTEGER, str(number(chance))]

    def floats(self, seen: Sequence[Encoded]) -> Draw[Encoded]:
        numbers = [float(value[1]) for value in seen]
        # Recorded infinities, NaN and the largest numbers are no limits.
        finite = [number for number in numbers if abs(number) < _FINITE]
        low, high = min(finite, default=-1.0), max(finite, default=1.0)
        reach = 5.0 + (high - low) / 2

        def near(chance: Random) -> float:
            # Numbers with few digits are often boundaries.
            number = chance.uniform(low - reach, high + reach)
            return chance.choice((number, round(number), round(2 * number) / 2, round(number, 2)))

        def far(chance: Random) -> float:
            return chance.choice((-1, 1)) * 10 ** chance.uniform(-12, 18)

        number: Draw[float] = any_of([near, near, far, one_of(_FLOATS)])
        return lambda chance: [tags.FLOAT, repr(float(number(chance)))]

    def texts(self, seen: Sequence[Encoded]) -> Draw[Encoded]:
        literals = self.hints.texts
        letters = sorted(set("".join([*(value[1] for value in seen), *literals])) | set("a 0"))[:_LETTERS]
        longest = min(_LONGEST * 4, max(len(value[1]) for value in seen) + 3)
        recorded = one_of([value[1] for value in spread(seen, FEW)])
        known = _text(letters, longest)
        inserted, pieces = [*letters, *literals], literals or letters

        def edited(chance: Random) -> str:
            # Random strings rarely mean anything to the function, but edited recorded strings do.
            text = recorded(chance)
            edit, place = chance.choice(_TEXT_EDITS), chance.randint(0, len(text))
            return edit(text, place, chance.choice(inserted))

        def joined(chance: Random) -> str:
            piece = any_of([one_of(pieces), recorded, known])
            return "".join(piece(chance) for _ in range(_length(chance, 4)))

        def by_line(chance: Random) -> str:
            # With a line of another recorded text, which the function may treat otherwise after these lines.
            lines = recorded(chance).split("\n")
            edit, place = chance.choice(_LIST_EDITS), chance.randint(0, len(lines))
            return "\n".join(edit(lines, place, chance.choice(self.hints.lines)))

        plain, others = _text(string.printable, longest), _any_text(longest)
        has_lines = self.hints.lines and any("\n" in value[1] for value in seen)
        text = any_of([*([by_line] * 4 if has_lines else []), edited, edited, known, joined, plain, others])
        return lambda chance: [tags.TEXT, text(chance)]

    def bytes(self, seen: Sequence[Encoded]) -> Draw[Encoded]:
        # Encoded as hexadecimal digits, two for each byte.
        longest = min(_LONGEST * 4, max(len(value[1]) // 2 for value in seen) + 3)
        return lambda chance: [tags.BYTES, chance.randbytes(_length(chance, longest)).hex()]

    def dictionaries(self, seen: Sequence[Encoded]) -> Draw[Encoded] | None:
        pairs = [pair for value in seen for pair in value[1]]
        if not pairs:
            return None
        key = self.like([key for key, _ in pairs])
        part = self.like([part for _, part in pairs])
        longest = min(_LONGEST, max(len(value[1]) for value in seen) + 2)

        def draw(chance: Random) -> Encoded:
            made = ([key(chance), part(chance)] for _ in range(_length(chance, longest)))
            return [tags.DICTIONARY, list({repr(pair[0]): pair for pair in made}.values())]

        return draw

    def containers(self, seen: Sequence[Encoded]) -> Draw[Encoded] | None:
        kind, lengths = seen[0][0], {len(value[1]) for value in seen}
        # A slice, or a tuple that always has the same length, has a separate type at each position.
        if kind in (tags.TUPLE, tags.SLICE) and len(lengths) == 1:
            row = self.by_place([value[1] for value in seen])
            return lambda chance: [kind, row(chance)]
        parts = [part for value in seen for part in value[1]]
        if not parts:
            return None
        longest = min(_LONGEST, max(lengths) + 3)
        member = self.like(parts)
        recorded = one_of([as_input(value)[1] for value in spread(seen, FEW)])

        def edited(chance: Random) -> list[Encoded]:
            inside = list(recorded(chance))
            edit, place = chance.choice(_LIST_EDITS), chance.randint(0, len(inside))
            return edit(inside, place, member(chance))

        def made(chance: Random) -> list[Encoded]:
            return [member(chance) for _ in range(_length(chance, longest))]

        inside = any_of([edited, made])
        return lambda chance: [kind, inside(chance)]

    def by_place(self, rows: Sequence[Sequence[Encoded]]) -> Draw[list[Encoded]]:
        """Return a function that draws rows of the same length, each position like that of the rows."""
        columns = [self.like([row[n] for row in rows]) for n in range(len(rows[0]))]
        return lambda chance: [draw(chance) for draw in columns]

    def made_of_parts(self, seen: Sequence[Encoded]) -> Draw[Encoded]:
        """Return a function that draws dates, times, decimals and fractions of the classes seen."""
        names = list(dict.fromkeys(value[1] for value in seen))
        of_name = {name: self.by_place([value[2] for value in seen if value[1] == name]) for name in names}

        def draw(chance: Random) -> Encoded:
            name = chance.choice(names)
            return [tags.EXACT, name, of_name[name](chance)]

        return draw

    def objects(self, seen: Sequence[Encoded]) -> Draw[Encoded] | None:
        """Return a function that draws recorded objects with one or two attributes replaced.

        The new values are like those of the same attribute in all recorded objects of the class. Returns None
        if the objects are nested too deeply, or if none of them has attributes.
        """
        if self.within >= _DEEPEST:
            return None
        self.within += 1
        options = [self._of_class(seen, name) for name in dict.fromkeys(value[3] for value in seen)]
        self.within -= 1
        possible = [draw for draw in options if draw is not None]
        return any_of(possible) if possible else None

    def _of_class(self, seen: Sequence[Encoded], name: str) -> Draw[Encoded] | None:
        held = [value for value in seen if value[3] == name and attributes_of(value)]
        pools: dict[str, list[Encoded]] = {}
        for value in held:
            for attribute, part in attributes_of(value):
                pools.setdefault(attribute, []).append(part)
        # Only attributes that the function uses, if there are any: otherwise, they would rarely be drawn.
        chosen = [attribute for attribute in pools if attribute in self.hints.names] or list(pools)
        draws = {attribute: self.like(pools[attribute]) for attribute in chosen[:FEW]}
        if not draws:
            return None
        objects, attributes = spread(held, FEW), list(draws)

        def draw(chance: Random) -> Encoded:
            changed = chance.sample(attributes, min(chance.randint(1, 2), len(attributes)))
            return with_attributes(chance.choice(objects), [[name, draws[name](chance)] for name in changed])

        return draw


_TEXT_EDITS: Sequence[Callable[[str, int, str], str]] = (
    lambda text, place, piece: text[:place] + piece + text[place:],
    lambda text, place, piece: text[:place] + text[place + 1 :],
    lambda text, place, piece: text[:place] + piece + text[place + 1 :],
    lambda text, place, piece: text[:place],
    lambda text, place, piece: text[place:],
    lambda text, place, piece: f" {text}",
    lambda text, place, piece: f"{text} ",
    lambda text, place, piece: f"{text}\n",
    lambda text, place, piece: text.swapcase(),
    lambda text, place, piece: text + text,
    lambda text, place, piece: text[::-1],
)
"""Functions that make a small change to a string: at a place in it, or with a piece of another string."""
_LIST_EDITS: Sequence[Callable[[list[Any], int, Any], list[Any]]] = (
    lambda parts, place, part: [*parts[:place], *parts[place + 1 :]],
    lambda parts, place, part: [*parts[:place], part, *parts[place:]],
    lambda parts, place, part: [*parts[:place], part, *parts[place + 1 :]],
    lambda parts, place, part: [*parts, *parts[:1]],
    lambda parts, place, part: parts[::-1],
)
"""Functions that make a small change to a list, at a place in it or with another part."""
_DRAWINGS: Mapping[str, Callable[[_Drawing, Sequence[Encoded]], Draw[Encoded] | None]] = {
    tags.BOOLEAN: _Drawing.booleans,
    tags.INTEGER: _Drawing.integers,
    tags.FLOAT: _Drawing.floats,
    tags.TEXT: _Drawing.texts,
    tags.BYTES: _Drawing.bytes,
    tags.DICTIONARY: _Drawing.dictionaries,
    tags.EXACT: _Drawing.made_of_parts,
    tags.OBJECT: _Drawing.objects,
    **dict.fromkeys(tags.CONTAINERS, _Drawing.containers),
}
"""For each tag of a value, a function that makes a drawing function from recorded values, or returns None."""

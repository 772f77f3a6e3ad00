"""Makes inputs that a suite does not try, by varying recorded arguments according to type and attributes.

Some of them are at the boundaries that the source suggests; the others are drawn. Those that reach lines that
a repair changed, or take a path that few others take, can be varied again, because versions that have agreed
so far may still differ there (decision 180). All are encoded, because nothing of a repository may be
unpickled here.
"""

from __future__ import annotations

import difflib
import operator
import string
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from gistpoint.sandbox.equivalence.boundaries import boundary_inputs
from gistpoint.sandbox.equivalence.encoded import (
    CONTAINERS,
    Encoded,
    as_input,
    attributes_of,
    spread,
    with_attributes,
)
from gistpoint.sandbox.equivalence.hints import NO_HINTS, Hints
from gistpoint.sandbox.equivalence.simplifying import size

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_Item = TypeVar("_Item")
_LONGEST = 12
_FAR = 10_000
"""The limit on integers that are far from recorded ones; larger ones would often cause endless loops."""
_FINITE = 1e300
_LETTERS = 200
_FEW = 40
"""The maximum number of recorded values of one parameter from which values are drawn."""
_DEEPEST = 3
"""The number of levels of nested objects whose attributes are drawn."""
_AT_BOUNDARIES = 2 / 3
"""The maximum share of the inputs that are at boundaries."""


Lines = frozenset[int]


@dataclass(frozen=True, slots=True)
class ReachedInput:
    """The arguments of a call, and the lines of the function's file that it reached in both versions."""

    values: Sequence[Encoded]
    original: Lines
    repair: Lines


def changed_lines(original: bytes, repair: bytes) -> tuple[Lines, Lines]:
    """Return the 1-based lines in which two sources differ, in the original and in the repair.

    Where one of them has no line, for example because lines were deleted, the lines before and after count.
    """
    found: tuple[set[int], set[int]] = (set(), set())
    matcher = difflib.SequenceMatcher(None, original.splitlines(), repair.splitlines(), autojunk=False)
    for tag, first, last, other_first, other_last in matcher.get_opcodes():
        if tag == "equal":
            continue
        for lines, begin, end in ((found[0], first, last), (found[1], other_first, other_last)):
            lines.update(range(begin + 1, end + 1) if end > begin else (begin, begin + 1))
    return frozenset(found[0]), frozenset(found[1])


def worth_varying(
    reached: Sequence[ReachedInput], changed: tuple[Lines, Lines], most: int
) -> list[Sequence[Encoded]]:
    """Return the arguments of at most `most` inputs, the smallest of each path through the function.

    Paths that reach more of the changed lines come first; among equals, those that fewer inputs take.
    """
    ways: dict[tuple[Lines, Lines], Sequence[Encoded]] = {}
    taken: Counter[tuple[Lines, Lines]] = Counter()
    for item in reached:
        way = item.original, item.repair
        taken[way] += 1
        if way not in ways or size(item.values) < size(ways[way]):
            ways[way] = item.values

    def rank(way: tuple[Lines, Lines]) -> tuple[int, int]:
        original, repair = way
        return -len(original & changed[0]) - len(repair & changed[1]), taken[way]

    return [ways[way] for way in sorted(ways, key=rank)[:most]]


def varied(examples: Sequence[Sequence[Encoded]], most: int, hints: Hints = NO_HINTS) -> list[list[Encoded]]:
    """Return at most `most` different lists of arguments like `examples`; equal examples give equal results.

    The result is empty if there are no examples, or if the calls have no arguments.
    """
    if not examples or not examples[0]:
        return []
    found = boundary_inputs(examples, hints, int(_AT_BOUNDARIES * most))
    known = {repr(item) for item in found}
    wanted = most - len(found)
    # Drawing takes most of the time here; some of what is drawn is known, or drawn twice.
    for draws in (min(most, wanted + wanted // 2), most):
        new = [item for text, item in _drawn(examples, draws, hints).items() if text not in known]
        if len(new) >= wanted:
            break
    # Drawn inputs come first, because a function may take all memory for some numbers at boundaries.
    return [*new[:wanted], *found]


def _drawn(examples: Sequence[Sequence[Encoded]], most: int, hints: Hints) -> dict[str, list[Encoded]]:
    """Return inputs drawn by Hypothesis, by their `repr`."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st
    from hypothesis.errors import HypothesisWarning

    found: list[list[Encoded]] = []
    drawing = _Drawing(hints)
    places = range(len(examples[0]))
    of_place = [drawing.strategy([example[n] for example in examples]) for n in places]
    # Arguments often fit together, so half of the inputs are a recorded call with one argument changed.
    whole = _one_of([list(map(as_input, example)) for example in spread(examples, _FEW)])
    changed = st.one_of([st.builds(_with_one_changed, whole, st.just(n), of_place[n]) for n in places])
    inputs = st.one_of(changed, st.tuples(*of_place).map(list))

    @settings(
        max_examples=most,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
        ],
    )
    @given(inputs)
    def collect(drawn: list[Encoded]) -> None:
        found.append(drawn)

    with warnings.catch_warnings():
        # Hypothesis warns about a strategy's long `repr`, which contains the values that are drawn from.
        warnings.simplefilter("ignore", HypothesisWarning)
        collect()
    return {repr(item): item for item in found}


def _with_one_changed(recorded: Sequence[Encoded], place: int, drawn: Encoded) -> list[Encoded]:
    """Return a recorded call's arguments, with the argument at `place` replaced by the drawn one."""
    return [*recorded[:place], drawn, *recorded[place + 1 :]]


class _Choice(Generic[_Item]):
    """A function that returns the value at a position.

    It replaces `sampled_from`, because Hypothesis would show that with all of its values, which may be large.
    """

    def __init__(self, values: Sequence[_Item]) -> None:
        self.values = values

    def __call__(self, place: int) -> _Item:
        return self.values[place]


def _one_of(values: Sequence[_Item]) -> SearchStrategy[_Item]:
    from hypothesis import strategies as st

    return st.integers(0, len(values) - 1).map(_Choice(values))


class _Drawing:
    """A maker of strategies for values like recorded ones."""

    def __init__(self, hints: Hints) -> None:
        self.hints = hints
        self.within = 0
        """The number of objects around the value whose strategy is being made."""

    def strategy(self, values: Sequence[Encoded]) -> SearchStrategy[Encoded]:
        """Return a strategy for values like the recorded ones of one parameter, including these."""
        from hypothesis import strategies as st

        of_kind: dict[str, list[Encoded]] = {}
        for value in values:
            of_kind.setdefault(value[0], []).append(value)
        recorded = _one_of(list(map(as_input, spread(values, _FEW))))
        made = (_STRATEGIES[kind](self, seen) for kind, seen in of_kind.items() if kind in _STRATEGIES)
        return st.one_of([recorded, *(strategy for strategy in made if strategy is not None)])

    def booleans(self, _: Sequence[Encoded]) -> SearchStrategy[Encoded]:
        from hypothesis import strategies as st

        return st.booleans().map(lambda value: ["b", value])

    def integers(self, seen: Sequence[Encoded]) -> SearchStrategy[Encoded]:
        from hypothesis import strategies as st

        numbers = [int(value[1]) for value in seen]
        low, high = min(numbers), max(numbers)
        reach = 5 + (high - low) // 2
        near, far = st.integers(low - reach, high + reach), st.integers(-_FAR, _FAR)
        # Boundary faults appear at or next to a number that was recorded or is in the source.
        known = [*spread(numbers, _FEW), *self.hints.numbers]
        adjacent = st.builds(operator.add, st.sampled_from(known), st.sampled_from((-1, 0, 1)))
        return st.one_of(near, adjacent, far).map(lambda value: ["i", str(value)])

    def floats(self, seen: Sequence[Encoded]) -> SearchStrategy[Encoded]:
        from hypothesis import strategies as st

        numbers = [float(value[1]) for value in seen]
        # With infinities, NaN or the largest numbers, Hypothesis would refuse the limits.
        finite = [number for number in numbers if abs(number) < _FINITE]
        low, high = min(finite, default=-1.0), max(finite, default=1.0)
        reach = 5.0 + (high - low) / 2
        near = st.floats(low - reach, high + reach)
        far = st.floats(allow_nan=False, allow_infinity=False)
        return st.one_of(near, near, far).map(lambda value: ["f", repr(value)])

    def texts(self, seen: Sequence[Encoded]) -> SearchStrategy[Encoded]:
        from hypothesis import strategies as st

        literals = self.hints.texts
        letters = sorted(set("".join([*(value[1] for value in seen), *literals])) | set("a 0"))[:_LETTERS]
        longest = min(_LONGEST * 4, max(len(value[1]) for value in seen) + 3)
        known, others = st.text(st.sampled_from(letters), max_size=longest), st.text(max_size=longest)
        plain = st.text(st.sampled_from(string.printable), max_size=longest)
        recorded = _one_of([value[1] for value in spread(seen, _FEW)])
        # Random strings rarely mean anything to the function, but edited recorded strings do.
        edited = st.builds(
            lambda text, edit, place, piece: edit(text, place % (len(text) + 1), piece),
            recorded,
            st.sampled_from(_TEXT_EDITS),
            st.integers(0, _FAR),
            st.sampled_from([*letters, *literals]),
        )
        pieces = st.sampled_from(literals or letters)
        joined = st.lists(st.one_of(pieces, recorded, known), max_size=4).map("".join)
        return st.one_of(edited, edited, known, joined, plain, others).map(lambda value: ["s", value])

    def bytes(self, seen: Sequence[Encoded]) -> SearchStrategy[Encoded]:
        from hypothesis import strategies as st

        # Encoded as hexadecimal digits, two for each byte.
        longest = min(_LONGEST * 4, max(len(value[1]) // 2 for value in seen) + 3)
        return st.binary(max_size=longest).map(lambda value: ["y", value.hex()])

    def dictionaries(self, seen: Sequence[Encoded]) -> SearchStrategy[Encoded] | None:
        from hypothesis import strategies as st

        pairs = [pair for value in seen for pair in value[1]]
        if not pairs:
            return None
        keys = self.strategy([key for key, _ in pairs])
        values = self.strategy([value for _, value in pairs])
        pair = st.tuples(keys, values).map(list)
        longest = min(_LONGEST, max(len(value[1]) for value in seen) + 2)
        unique = st.lists(pair, max_size=longest, unique_by=lambda made: repr(made[0]))
        return unique.map(lambda value: ["d", value])

    def containers(self, seen: Sequence[Encoded]) -> SearchStrategy[Encoded] | None:
        from hypothesis import strategies as st

        kind, lengths = seen[0][0], {len(value[1]) for value in seen}
        # A slice, or a tuple that always has the same length, has a separate type at each position.
        if kind in "tc" and len(lengths) == 1:
            return self.by_place([value[1] for value in seen]).map(lambda parts: [kind, parts])
        parts = [part for value in seen for part in value[1]]
        if not parts:
            return None
        longest = min(_LONGEST, max(lengths) + 3)
        member = self.strategy(parts)
        made = st.lists(member, max_size=longest)
        edited = st.builds(
            lambda parts, edit, place, part: edit(list(parts), place % (len(parts) + 1), part),
            _one_of([as_input(value)[1] for value in spread(seen, _FEW)]),
            st.sampled_from(_LIST_EDITS),
            st.integers(0, _FAR),
            member,
        )
        return st.one_of(edited, made).map(lambda value: [kind, value])

    def by_place(self, rows: Sequence[Sequence[Encoded]]) -> SearchStrategy[list[Encoded]]:
        """Return a strategy for rows of the same length, with a separate strategy for each position."""
        from hypothesis import strategies as st

        columns = (self.strategy([row[n] for row in rows]) for n in range(len(rows[0])))
        return st.tuples(*columns).map(list)

    def made_of_parts(self, seen: Sequence[Encoded]) -> SearchStrategy[Encoded]:
        """Return a strategy for dates, times, decimals and fractions of the classes seen."""
        from hypothesis import strategies as st

        options = []
        for name in dict.fromkeys(value[1] for value in seen):
            rows = [value[2] for value in seen if value[1] == name]
            options.append(self.by_place(rows).map(lambda parts, name=name: ["x", name, parts]))  # type: ignore[misc]
        return st.one_of(options)

    def objects(self, seen: Sequence[Encoded]) -> SearchStrategy[Encoded] | None:
        """Return a strategy for recorded objects with one or two attributes replaced.

        The new values are like those of the same attribute in all recorded objects of the class. Returns None
        if the objects are nested too deeply, or if none of them has attributes.
        """
        from hypothesis import strategies as st

        if self.within >= _DEEPEST:
            return None
        self.within += 1
        options = []
        for name in dict.fromkeys(value[3] for value in seen):
            held = [value for value in seen if value[3] == name and attributes_of(value)]
            pools: dict[str, list[Encoded]] = {}
            for value in held:
                for attribute, part in attributes_of(value):
                    pools.setdefault(attribute, []).append(part)
            # Only attributes that the function uses, if there are any: otherwise, they would rarely be drawn.
            chosen = [attribute for attribute in pools if attribute in self.hints.names] or list(pools)
            pairs = [
                self.strategy(pools[attribute]).map(lambda part, attribute=attribute: [attribute, part])  # type: ignore[misc]
                for attribute in chosen[:_FEW]
            ]
            if pairs:
                pair = st.one_of(pairs)
                changes = st.lists(pair, min_size=1, max_size=2, unique_by=lambda made: str(made[0]))
                options.append(st.builds(with_attributes, _one_of(spread(held, _FEW)), changes))
        self.within -= 1
        return st.one_of(options) if options else None


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
_LIST_EDITS: Sequence[Callable[[list[Encoded], int, Encoded], list[Encoded]]] = (
    lambda parts, place, part: [*parts[:place], *parts[place + 1 :]],
    lambda parts, place, part: [*parts[:place], part, *parts[place:]],
    lambda parts, place, part: [*parts[:place], part, *parts[place + 1 :]],
    lambda parts, place, part: [*parts, *parts[:1]],
    lambda parts, place, part: parts[::-1],
)
"""Functions that make a small change to a container, at a place in it or with another part."""
_STRATEGIES: Mapping[str, Callable[[_Drawing, Sequence[Encoded]], SearchStrategy[Encoded] | None]] = {
    "b": _Drawing.booleans,
    "i": _Drawing.integers,
    "f": _Drawing.floats,
    "s": _Drawing.texts,
    "y": _Drawing.bytes,
    "d": _Drawing.dictionaries,
    "x": _Drawing.made_of_parts,
    "o": _Drawing.objects,
    **dict.fromkeys(CONTAINERS, _Drawing.containers),
}
"""For each tag of a value, a function that makes a strategy from recorded values, or returns None."""

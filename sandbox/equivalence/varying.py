"""Makes inputs that a suite does not try, by varying recorded arguments according to type and attributes.

Some of them are at the boundaries that the source suggests; the others are drawn. Those that reach lines that
a repair changed, or take a path that few others take, can be varied again, because versions that have agreed
so far may still differ there (decision 180). All are encoded, because nothing of a repository may be
unpickled here.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from gistpoint.sandbox.equivalence.boundaries import boundary_inputs
from gistpoint.sandbox.equivalence.drawing import FEW, Draw, any_of, like, one_of
from gistpoint.sandbox.equivalence.encoded import Encoded, as_input, spread
from gistpoint.sandbox.equivalence.hints import NO_HINTS, Hints
from gistpoint.sandbox.equivalence.simplifying import size

_AT_BOUNDARIES = 2 / 3
"""The maximum share of the inputs that are at boundaries."""
_DRAWN = 4
"""The multiple of the wanted inputs that are drawn, because some are known, or are drawn twice."""


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
    smallest: dict[tuple[Lines, Lines], Sequence[Encoded]] = {}
    taken: Counter[tuple[Lines, Lines]] = Counter()
    for item in reached:
        path = item.original, item.repair
        taken[path] += 1
        if path not in smallest or size(item.values) < size(smallest[path]):
            smallest[path] = item.values

    def rank(path: tuple[Lines, Lines]) -> tuple[int, int]:
        original, repair = path
        return -len(original & changed[0]) - len(repair & changed[1]), taken[path]

    return [smallest[path] for path in sorted(smallest, key=rank)[:most]]


def varied(examples: Sequence[Sequence[Encoded]], most: int, hints: Hints = NO_HINTS) -> list[list[Encoded]]:
    """Return at most `most` different lists of arguments like `examples`; equal examples give equal results.

    The result is empty if there are no examples, or if the calls have no arguments.
    """
    if not examples or not examples[0]:
        return []
    found = boundary_inputs(examples, hints, int(_AT_BOUNDARIES * most))
    known = set(map(repr, found))
    wanted = most - len(found)
    draw, chance = _inputs(examples, hints), Random(0)
    new: dict[str, list[Encoded]] = {}
    for _ in range(_DRAWN * wanted):
        made = draw(chance)
        text = repr(made)
        if text not in known:
            new.setdefault(text, made)
        if len(new) >= wanted:
            break
    # Drawn inputs come first, because a function may take all memory for some numbers at boundaries.
    return [*new.values(), *found]


def _inputs(examples: Sequence[Sequence[Encoded]], hints: Hints) -> Draw[list[Encoded]]:
    """Return a function that draws inputs.

    Arguments often fit together, so half of the inputs are a recorded call with one argument changed.
    """
    arguments = [like([example[n] for example in examples], hints) for n in range(len(examples[0]))]
    recorded = one_of([list(map(as_input, example)) for example in spread(examples, FEW)])

    def with_one_changed(chance: Random) -> list[Encoded]:
        values, place = list(recorded(chance)), chance.randrange(len(arguments))
        values[place] = arguments[place](chance)
        return values

    return any_of([with_one_changed, lambda chance: [draw(chance) for draw in arguments]])

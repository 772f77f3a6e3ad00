"""How many corruptions of a function are tried: more where one can be hard to locate, few where each is dear."""

from __future__ import annotations

from dataclasses import dataclass

from gistpoint.core.generation.campaign.library import Library

LOCATED = 5
"""Places in a spectrum-based localisation that are looked at first."""


@dataclass(frozen=True, slots=True)
class Effort:
    """The tries that a function is worth."""

    singles: int
    give_up: int
    """Tries without a good one, behind which no more single ones are tried: it is no good place to hide in."""


HIDEABLE, USUAL, DEAR = Effort(32, 16), Effort(16, 9), Effort(4, 3)


def effort_for(library: Library, name: str, least: int) -> Effort:
    """Return what a function is worth of which at least `least` tests have to fail.

    Each try of a function that runs while modules are imported is a run of the tests in a process of its own.
    """
    if name in library.test_map.at_import:
        return DEAR
    return HIDEABLE if hiding_places(library, name, least) >= LOCATED else USUAL


def hiding_places(library: Library, name: str, least: int) -> int:
    """Return how many other functions are entered by tests, at least `least`, that all enter this one too.

    Where the tests of one of those fail and no others, a localisation by Ochiai puts it first, and this one behind.
    """
    own = library.entering(name)
    return sum(len(tests) >= least and tests <= own for other, tests in library.entered.items() if other != name)

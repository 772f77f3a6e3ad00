"""Which step comes next: the next of a kind, by what was surveyed so far."""

from __future__ import annotations

from collections.abc import Callable, Collection

from gistpoint.tui.screens.review.survey import Survey, bit_of

WANTED = {
    "submission": ("submission",),
    "error": ("error",),
    "edit": ("edit",),
    "test": ("test_run",),
    "mark": (
        "first_read_right_file",
        "first_view_right_function",
        "first_edit_right_function",
        "repeated_command",
        "reread",
        "revert",
        "submission",
    ),
}
"""The marks that each kind of movement stops at."""


def next_step(survey: Survey, here: int, by: int, count: int, fits: Callable[[int], bool]) -> tuple[int | None, bool]:
    """Return the nearest step before or behind `here` that fits, and whether all steps on the way were surveyed."""
    places = range(here + 1, count) if by > 0 else range(here - 1, -1, -1)
    for index in places:
        if index >= len(survey):
            return None, False
        if fits(index):
            return index, True
    return None, True


def fits(survey: Survey, what: str) -> Callable[[int], bool]:
    """Return whether a step is what a movement looks for, from the marks alone."""
    bits = sum(bit_of(name) for name in WANTED[what])
    return lambda index: bool(survey.bits[index] & bits)


def nearest(places: Collection[int], here: int, by: int) -> int | None:
    """Return the nearest of some steps before or behind `here`."""
    found = [place for place in places if (place > here if by > 0 else place < here)]
    return (min(found) if by > 0 else max(found)) if found else None

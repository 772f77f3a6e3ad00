"""Finds a smallest part of a change that still makes a test fail (ddmin)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

T = TypeVar("T")


class TooManyProbesError(Exception):
    """The allowed number of probes is used up."""


def smallest(items: Sequence[T], fails: Callable[[Sequence[T]], bool], most: int) -> tuple[T, ...]:
    """Return a part of `items` for which `fails` is true and of which no item can be left out.

    `fails` must be true for all items together, and is called at most `most` times; if that is not enough,
    the smallest part that was found is returned. Parts keep the order of the items. This is the algorithm
    ddmin (Zeller and Hildebrandt, Simplifying and isolating failure-inducing input, 2002).
    """
    probes = _Probes(items, fails, most)
    part = list(range(len(items)))
    pieces = 2
    try:
        while len(part) >= 2:
            chunks = _split(part, pieces)
            smaller = next((chunk for chunk in chunks if probes.fail(chunk)), None)
            if smaller is not None:
                part, pieces = smaller, 2
                continue
            rests = [[n for n in part if n not in chunk] for chunk in chunks] if pieces > 2 else []
            smaller = next((rest for rest in rests if probes.fail(rest)), None)
            if smaller is not None:
                part, pieces = smaller, max(pieces - 1, 2)
            elif pieces < len(part):
                pieces = min(2 * pieces, len(part))
            else:
                break
    except TooManyProbesError:
        pass
    return tuple(items[n] for n in part)


class _Probes(Generic[T]):
    """Calls `fails` once for each part, up to a number of calls."""

    def __init__(self, items: Sequence[T], fails: Callable[[Sequence[T]], bool], most: int) -> None:
        self._items, self._fails, self._left = items, fails, most
        self._known: dict[tuple[int, ...], bool] = {}

    def fail(self, part: Sequence[int]) -> bool:
        """Return whether a part fails. Raises `TooManyProbesError` if no call is left."""
        key = tuple(part)
        if key not in self._known:
            if not self._left:
                raise TooManyProbesError
            self._left -= 1
            self._known[key] = self._fails([self._items[n] for n in key])
        return self._known[key]


def _split(part: Sequence[int], pieces: int) -> list[list[int]]:
    """Return `part` in as many chunks, of almost equal length."""
    ends = [len(part) * n // pieces for n in range(pieces + 1)]
    return [list(part[start:end]) for start, end in pairwise(ends)]
